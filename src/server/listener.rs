use std::{
    fs, io,
    net::SocketAddr,
    os::unix::fs::{FileTypeExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use socket2::{SockRef, TcpKeepalive};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::{TcpListener, TcpSocket, TcpStream, UnixListener, lookup_host},
};
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use super::connection;
use crate::{command::Gateway, config::ServerSettings};

/// How long to wait after the system could not give us another connection (it is out of descriptors or memory).
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A socket that accepts connections.
pub(super) enum Listener {
    Tcp(TcpListener),
    Unix(UnixListener, PathBuf),
}

impl Listener {
    /// Listens on every address of the settings.
    pub(super) async fn bind_all(settings: &ServerSettings) -> io::Result<Vec<Self>> {
        let mut listeners = Vec::new();
        for host in &settings.bind {
            let at = format!("{host}:{}", settings.port);
            let resolved = lookup_host((host.as_str(), settings.port)).await;
            for address in resolved.map_err(|error| cannot_listen(&at, &error))? {
                let listener = bind_tcp(address, settings.backlog).map_err(|error| cannot_listen(&at, &error))?;
                listeners.push(Self::Tcp(listener));
            }
        }
        let path = &settings.unix_socket;
        if !path.as_os_str().is_empty() {
            let permissions = settings.unix_socket_mode().map_err(io::Error::other)?;
            let listener = bind_unix(path, permissions);
            let listener = listener.map_err(|error| cannot_listen(&path.display().to_string(), &error))?;
            listeners.push(Self::Unix(listener, path.clone()));
        }
        Ok(listeners)
    }

    /// `host:port`, or the path of a Unix socket.
    pub(super) fn address(&self) -> String {
        match self {
            Self::Tcp(listener) => listener.local_addr().map_or_else(|error| error.to_string(), |at| at.to_string()),
            Self::Unix(_, path) => path.display().to_string(),
        }
    }

    /// Accepts connections until the gateway shuts down, and serves each in a task of its own.
    pub(super) async fn accept(self, gateway: Arc<Gateway>, connections: TaskTracker) {
        loop {
            let accepted = tokio::select! {
                () = gateway.shutdown.cancelled() => break,
                accepted = self.accept_one(&gateway, &connections) => accepted,
            };
            if let Err(error) = accepted {
                tracing::warn!(%error, "a connection could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
        if let Self::Unix(_, path) = &self {
            // Somebody else may have removed it: then it is gone, which is all we want.
            let _ = fs::remove_file(path);
        }
    }

    async fn accept_one(&self, gateway: &Arc<Gateway>, connections: &TaskTracker) -> io::Result<()> {
        match self {
            Self::Tcp(listener) => {
                let (stream, from) = listener.accept().await?;
                let keepalive = gateway.settings().server.tcp_keepalive.as_duration();
                // The peer may have gone already; then serving it ends at once, without a word.
                if let Err(error) = tune(&stream, keepalive) {
                    tracing::debug!(%error, "socket options refused");
                }
                let to = stream.local_addr().map_or_else(|_| self.address(), |to| to.to_string());
                serve(stream, from.to_string(), to, gateway, connections);
            }
            Self::Unix(listener, path) => {
                let (stream, _) = listener.accept().await?;
                let address = format!("{}:0", path.display());
                serve(stream, address.clone(), address, gateway, connections);
            }
        }
        Ok(())
    }
}

/// Serves a connection in a task of its own, or refuses it if there are too many.
fn serve<S>(mut stream: S, from: String, to: String, gateway: &Arc<Gateway>, connections: &TaskTracker)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    gateway.statistics.connections_received.add(1);
    if gateway.clients.count() >= gateway.settings().server.maxclients {
        gateway.statistics.connections_rejected.add(1);
        connections.spawn(async move {
            // Whether it hears the reason or not, the connection closes.
            let _ = stream.write_all(b"-ERR max number of clients reached\r\n").await;
        });
        return;
    }
    let client = gateway.clients.add(from, to, &gateway.shutdown);
    let span = tracing::debug_span!("connection", id = client.id, from = %client.address);
    connections.spawn(connection::serve(stream, client, Arc::clone(gateway)).instrument(span));
}

fn bind_tcp(address: SocketAddr, backlog: u32) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(backlog)
}

/// Binds a Unix socket, in place of one that a process left behind when it died.
fn bind_unix(path: &Path, permissions: Option<u32>) -> io::Result<UnixListener> {
    let is_stale = fs::metadata(path).is_ok_and(|found| found.file_type().is_socket())
        && std::os::unix::net::UnixStream::connect(path).is_err();
    if is_stale {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    if let Some(permissions) = permissions {
        fs::set_permissions(path, fs::Permissions::from_mode(permissions))?;
    }
    Ok(listener)
}

fn tune(stream: &TcpStream, keepalive: Duration) -> io::Result<()> {
    stream.set_nodelay(true)?;
    if !keepalive.is_zero() {
        // As Redis does: the first probe after the whole time, three more within it.
        let probes = TcpKeepalive::new().with_time(keepalive).with_interval(keepalive / 3).with_retries(3);
        SockRef::from(stream).set_tcp_keepalive(&probes)?;
    }
    Ok(())
}

fn cannot_listen(at: &str, error: &io::Error) -> io::Error {
    io::Error::new(error.kind(), format!("cannot listen on {at}: {error}"))
}
