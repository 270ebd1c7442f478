use std::sync::Arc;

use bytes::Bytes;

use super::{Entry, Gateway};
use crate::{
    client::Client,
    keyspace::{Unit, Watch},
    resp::{Protocol, Reply},
};

/// What one connection has agreed with us. Owned by the connection; what others may see of it is in [`Client`].
pub struct Session {
    /// What other connections see: CLIENT LIST and CLIENT KILL.
    pub client: Arc<Client>,
    /// The selected database.
    pub db: u8,
    /// The protocol of replies.
    pub protocol: Protocol,
    /// True once the client has given the password, or if there is none.
    pub authenticated: bool,
    /// Which replies are sent.
    pub reply_mode: ReplyMode,
    /// What has been queued since MULTI.
    pub transaction: Option<Transaction>,
    /// What WATCH has seen.
    pub watched: Vec<Watched>,
    /// Set by QUIT: the connection closes after the reply.
    pub closing: bool,
}

impl Session {
    /// A connection that has said nothing yet.
    pub fn new(client: Arc<Client>, gateway: &Gateway) -> Self {
        Self {
            client,
            db: 0,
            protocol: Protocol::default(),
            authenticated: !gateway.needs_password(),
            reply_mode: ReplyMode::default(),
            transaction: None,
            watched: Vec::new(),
            closing: false,
        }
    }

    /// What commands see of the session that run beside others of it. None of them changes the connection.
    pub fn beside(&self) -> Self {
        Self {
            client: Arc::clone(&self.client),
            db: self.db,
            protocol: self.protocol,
            authenticated: self.authenticated,
            reply_mode: self.reply_mode,
            transaction: None,
            watched: Vec::new(),
            closing: false,
        }
    }

    /// Back to where a new connection stands: RESET.
    pub fn reset(&mut self, gateway: &Gateway) {
        *self = Self::new(Arc::clone(&self.client), gateway);
    }
}

/// Which replies a client wants: CLIENT REPLY.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ReplyMode {
    /// All of them.
    #[default]
    On,
    /// None, until it says otherwise.
    Off,
    /// All but that to CLIENT REPLY SKIP, which is due now, and the one after it.
    SkipNext,
    /// All but the next one.
    Skip,
}

impl ReplyMode {
    /// The reply to send for a command that gave `reply`; moves on to the mode for the next command.
    pub fn filter(&mut self, reply: Reply) -> Reply {
        let (next, sends) = match self {
            Self::On => (Self::On, true),
            Self::Off => (Self::Off, false),
            Self::SkipNext => (Self::Skip, false),
            Self::Skip => (Self::On, false),
        };
        *self = next;
        if sends { reply } else { Reply::None }
    }
}

/// The commands between MULTI and EXEC.
#[derive(Default)]
pub struct Transaction {
    /// The commands, all of them known and with the right number of arguments.
    pub queue: Vec<(&'static Entry, Vec<Bytes>)>,
    /// True if a command could not be queued: EXEC will refuse the rest.
    pub refused: bool,
}

/// A key as WATCH saw it.
pub struct Watched {
    watch: Watch,
    seen: Option<Bytes>,
}

impl Watched {
    /// Watches from now on; `seen` is the key's state as read after `watch` began.
    pub fn new(watch: Watch, seen: Option<Bytes>) -> Self {
        Self { watch, seen }
    }

    /// The watched key.
    pub fn key(&self) -> &crate::keyspace::Key {
        self.watch.key()
    }

    /// True if the key has changed since WATCH, as `unit` sees it.
    pub async fn is_changed(&self, unit: &mut Unit<'_>) -> super::Result<bool> {
        Ok(self.watch.is_changed() || unit.state(self.watch.key()).await? != self.seen)
    }
}
