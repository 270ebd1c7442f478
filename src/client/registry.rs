use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Instant,
};

use bytes::Bytes;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use crate::resp::Protocol;

/// A connected client, as other connections may see it.
pub struct Client {
    /// Its number, which no other client of this gateway ever has.
    pub id: u64,
    /// Where it connects from: `host:port`, or the socket's path and `:0`.
    pub address: String,
    /// Where it connects to, in the same form.
    pub local_address: String,
    /// When it connected.
    pub connected_at: Instant,
    identity: Mutex<Identity>,
    killed: CancellationToken,
    stopped: CancellationToken,
}

/// What changes about a client while it is connected.
#[derive(Clone, Debug)]
pub struct Identity {
    /// CLIENT SETNAME.
    pub name: Bytes,
    /// CLIENT SETINFO LIB-NAME.
    pub library_name: Bytes,
    /// CLIENT SETINFO LIB-VER.
    pub library_version: Bytes,
    /// The selected database.
    pub db: u8,
    /// The protocol of replies.
    pub protocol: Protocol,
    /// How many commands are queued; `None` outside MULTI.
    pub queued: Option<usize>,
    /// How many keys are watched.
    pub watched: usize,
    /// The last command, in lower case; empty before the first.
    pub last_command: &'static str,
    /// When the client was last heard of.
    pub last_active: Instant,
    /// CLIENT NO-EVICT.
    pub no_evict: bool,
    /// CLIENT NO-TOUCH.
    pub no_touch: bool,
    /// Bytes waiting in its input buffer.
    pub input_bytes: usize,
    /// Bytes waiting in its output buffer.
    pub output_bytes: usize,
}

impl Client {
    /// What the client shows of itself now.
    pub fn identity(&self) -> Identity {
        self.identity.lock().clone()
    }

    /// Changes what the client shows of itself.
    pub fn update(&self, change: impl FnOnce(&mut Identity)) {
        change(&mut self.identity.lock());
    }

    /// Tells the connection to close at once: CLIENT KILL.
    pub fn kill(&self) {
        self.killed.cancel();
    }

    /// True if the client has been killed.
    pub fn is_killed(&self) -> bool {
        self.killed.is_cancelled()
    }

    /// Returns when the client has been killed.
    pub async fn killed(&self) {
        self.killed.cancelled().await;
    }

    /// Returns when the gateway shuts down.
    pub async fn stopped(&self) {
        self.stopped.cancelled().await;
    }
}

/// All connected clients, by number.
#[derive(Default)]
pub struct Clients {
    last_id: AtomicU64,
    connected: Mutex<BTreeMap<u64, Arc<Client>>>,
}

impl Clients {
    /// Adds a client, which is stopped when `shutdown` is cancelled. Its connection removes it again.
    pub fn add(&self, address: String, local_address: String, shutdown: &CancellationToken) -> Arc<Client> {
        let now = Instant::now();
        let client = Arc::new(Client {
            id: self.last_id.fetch_add(1, Ordering::Relaxed) + 1,
            address,
            local_address,
            connected_at: now,
            identity: Mutex::new(Identity {
                name: Bytes::new(),
                library_name: Bytes::new(),
                library_version: Bytes::new(),
                db: 0,
                protocol: Protocol::default(),
                queued: None,
                watched: 0,
                last_command: "",
                last_active: now,
                no_evict: false,
                no_touch: false,
                input_bytes: 0,
                output_bytes: 0,
            }),
            killed: CancellationToken::new(),
            stopped: shutdown.child_token(),
        });
        self.connected.lock().insert(client.id, Arc::clone(&client));
        client
    }

    /// Removes a client that has gone.
    pub fn remove(&self, client: &Client) {
        self.connected.lock().remove(&client.id);
    }

    /// Every client, the oldest first.
    pub fn all(&self) -> Vec<Arc<Client>> {
        self.connected.lock().values().cloned().collect()
    }

    /// The client with this number.
    pub fn with_id(&self, id: u64) -> Option<Arc<Client>> {
        self.connected.lock().get(&id).cloned()
    }

    /// How many there are.
    pub fn count(&self) -> usize {
        self.connected.lock().len()
    }
}
