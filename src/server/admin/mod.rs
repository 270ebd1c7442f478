//! The listener for monitoring: `/live`, `/ready` and `/metrics` over HTTP, apart from the clients' port.

mod metrics;

use std::{
    convert::Infallible,
    io,
    net::SocketAddr,
    sync::{Arc, OnceLock},
    time::Duration,
};

use bytes::Bytes;
use http_body_util::Full;
use hyper::{
    Method, Request, Response, StatusCode,
    body::Incoming,
    header::{ALLOW, CONTENT_TYPE, HeaderValue},
    server::conn::http1,
    service::service_fn,
};
use hyper_util::rt::TokioIo;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    time::timeout,
};

use super::Server;
use crate::{command::Gateway, config::AdminSettings};

/// How long one connection may last. Each carries one request, so whoever is slow, or silent, is soon gone.
const CONNECTION_MAX: Duration = Duration::from_secs(10);

/// Connections at the same time; more wait to be accepted.
const CONNECTIONS_MAX: usize = 64;

/// Bytes of a request's head.
const HEAD_BYTES_MAX: usize = 16 * 1024;

/// How long to wait after the system could not give us another connection.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// How long the store may take to say that it is well. Those who ask give up after a second or two.
const HEALTH_MAX: Duration = Duration::from_secs(1);

/// Answers monitoring until the process ends: from before the store is open until after the last client has gone.
pub struct Admin {
    gateway: Arc<OnceLock<Arc<Gateway>>>,
    address: Option<SocketAddr>,
}

impl Admin {
    /// Listens where `settings` say and answers in the background; does nothing if they name no address.
    ///
    /// # Errors
    /// The address is taken or not permitted.
    pub async fn start(settings: &AdminSettings) -> io::Result<Self> {
        let gateway = Arc::default();
        if settings.bind.is_empty() {
            return Ok(Self { gateway, address: None });
        }
        let listener = TcpListener::bind(&settings.bind).await.map_err(|error| {
            io::Error::new(error.kind(), format!("admin.bind: cannot listen on {}: {error}", settings.bind))
        })?;
        let address = listener.local_addr().ok();
        tokio::spawn(accept(listener, Arc::clone(&gateway)));
        Ok(Self { gateway, address })
    }

    /// Where it answers, if it does.
    pub fn address(&self) -> Option<SocketAddr> {
        self.address
    }

    /// Tells of `server` from now on, which is about to serve.
    pub fn watch(&self, server: &Server) {
        self.gateway.get_or_init(|| Arc::clone(&server.gateway));
    }
}

async fn accept(listener: TcpListener, gateway: Arc<OnceLock<Arc<Gateway>>>) {
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    loop {
        // The semaphore is never closed.
        let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
        match listener.accept().await {
            Ok((stream, _)) => {
                let gateway = gateway.get().cloned();
                tokio::spawn(async move {
                    serve(stream, gateway).await;
                    drop(place);
                });
            }
            Err(error) => {
                tracing::warn!(%error, "a connection for monitoring could not be accepted");
                tokio::time::sleep(ACCEPT_RETRY).await;
            }
        }
    }
}

/// Answers one request. What is no HTTP is answered as hyper sees fit; nobody else is concerned.
async fn serve(stream: TcpStream, gateway: Option<Arc<Gateway>>) {
    let service = service_fn(|request| answer(request, gateway.as_deref()));
    let connection = http1::Builder::new()
        .keep_alive(false)
        .max_buf_size(HEAD_BYTES_MAX)
        .serve_connection(TokioIo::new(stream), service);
    match timeout(CONNECTION_MAX, connection).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "monitoring: a connection failed"),
        Err(_) => tracing::debug!("monitoring: a connection took too long"),
    }
}

async fn answer(request: Request<Incoming>, gateway: Option<&Gateway>) -> Result<Response<Full<Bytes>>, Infallible> {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    Ok(match request.uri().path() {
        "/live" | "/ready" | "/metrics" if !is_read => {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, "only GET and HEAD\n".to_owned());
            response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            response
        }
        "/live" => text(StatusCode::OK, "ok\n".to_owned()),
        "/ready" => match readiness(gateway).await {
            Ok(()) => text(StatusCode::OK, "ok\n".to_owned()),
            Err(cause) => text(StatusCode::SERVICE_UNAVAILABLE, format!("{}\n", cause.replace('\n', " "))),
        },
        "/metrics" => metrics::response(gateway).await,
        _ => text(StatusCode::NOT_FOUND, "there are /live, /ready and /metrics\n".to_owned()),
    })
}

fn text(status: StatusCode, body: String) -> Response<Full<Bytes>> {
    typed(status, "text/plain; charset=utf-8", body)
}

fn typed(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// `Ok` if clients are served; otherwise the reason why not.
async fn readiness(gateway: Option<&Gateway>) -> Result<(), String> {
    let Some(gateway) = gateway else { return Err("the store is being opened".to_owned()) };
    if gateway.shutdown.is_cancelled() {
        return Err("shutting down".to_owned());
    }
    match timeout(HEALTH_MAX, gateway.keyspace.backend().health()).await {
        Ok(health) => health.map_err(|error| error.to_string()),
        Err(_) => Err("the store does not answer".to_owned()),
    }
}
