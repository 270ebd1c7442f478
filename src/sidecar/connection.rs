use std::{
    convert::Infallible,
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use redis::{
    AsyncConnectionConfig, Client, FromRedisValue, IntoConnectionInfo, ProtocolVersion, PushInfo, PushKind, RedisError,
    RedisResult, ScriptInvocation, aio::MultiplexedConnection,
};
use tokio::{sync::Mutex, time};

use super::{Result, Unavailable};

/// The one connection to the sidecar, which all units share; opened when it is needed, and again when it breaks.
///
/// Everything that is sent may be sent twice, so a request that finds a broken connection is sent again on a new one.
pub(super) struct Connection {
    client: Client,
    connect_timeout: Duration,
    timeout: Duration,
    open: Mutex<Option<Open>>,
    opened: AtomicU64,
    is_healthy: Arc<AtomicBool>,
}

#[derive(Clone)]
struct Open {
    /// Tells one connection from the next.
    number: u64,
    connection: MultiplexedConnection,
}

impl Connection {
    pub(super) fn new(url: &str, connect_timeout: Duration, timeout: Duration) -> Result<Self> {
        let info = url.into_connection_info()?;
        // Only then the client tells of a connection that ends.
        let settings = info.redis_settings().clone().set_protocol(ProtocolVersion::RESP3);
        Ok(Self {
            client: Client::open(info.set_redis_settings(settings))?,
            connect_timeout,
            timeout,
            open: Mutex::new(None),
            opened: AtomicU64::new(0),
            is_healthy: Arc::new(AtomicBool::new(false)),
        })
    }

    /// True if the last request was answered and the connection is still open.
    pub(super) fn is_healthy(&self) -> bool {
        self.is_healthy.load(Ordering::Relaxed)
    }

    /// The answer to a command or a pipeline.
    pub(super) async fn query<T: FromRedisValue>(&self, request: &redis::Pipeline) -> Result<T> {
        self.call(|mut connection| async move { request.query_async(&mut connection).await }).await
    }

    /// The answer of a script.
    pub(super) async fn invoke<T: FromRedisValue>(&self, script: &ScriptInvocation<'_>) -> Result<T> {
        self.call(|mut connection| async move { script.invoke_async(&mut connection).await }).await
    }

    async fn call<T, F>(&self, request: impl Fn(MultiplexedConnection) -> F) -> Result<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        // The client's futures take kilobytes, which every command on sorted sets would carry along.
        let answer = Box::pin(self.answer(request)).await;
        self.is_healthy.store(answer.is_ok(), Ordering::Relaxed);
        answer
    }

    async fn answer<T, F>(&self, request: impl Fn(MultiplexedConnection) -> F) -> Result<T>
    where
        F: Future<Output = RedisResult<T>>,
    {
        let deadline = time::Instant::now() + self.connect_timeout + self.timeout;
        let mut retries = 1;
        loop {
            let Open { number, connection } = within(deadline, self.open()).await??;
            let answer = within(time::Instant::now() + self.timeout, request(connection)).await;
            match answer {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if is_broken(&error) => {
                    self.forget(number).await;
                    if retries == 0 {
                        return Err(error.into());
                    }
                    retries -= 1;
                }
                Ok(Err(error)) => return Err(error.into()),
                Err(timed_out) => {
                    // A connection that does not answer may never do so again.
                    self.forget(number).await;
                    return Err(timed_out);
                }
            }
        }
    }

    async fn open(&self) -> Result<Open> {
        let mut open = self.open.lock().await;
        if let Some(open) = &*open {
            return Ok(open.clone());
        }
        let deadline = time::Instant::now() + self.connect_timeout;
        // The timeouts are ours.
        let config = AsyncConnectionConfig::new().set_connection_timeout(None).set_response_timeout(None);
        let is_healthy = Arc::clone(&self.is_healthy);
        let config = config.set_push_sender(move |push: PushInfo| {
            if push.kind == PushKind::Disconnection {
                is_healthy.store(false, Ordering::Relaxed);
            }
            Ok::<_, Infallible>(())
        });
        let connection = self.client.get_multiplexed_async_connection_with_config(&config);
        let connection = within(deadline, connection).await??;
        let number = self.opened.fetch_add(1, Ordering::Relaxed);
        Ok(open.insert(Open { number, connection }).clone())
    }

    async fn forget(&self, number: u64) {
        let mut open = self.open.lock().await;
        open.take_if(|open| open.number == number);
    }
}

fn is_broken(error: &RedisError) -> bool {
    error.is_io_error() || error.is_connection_dropped()
}

async fn within<T>(deadline: time::Instant, answer: impl Future<Output = T>) -> Result<T> {
    time::timeout_at(deadline, answer).await.map_err(|_| Unavailable("no answer in time".to_owned()))
}
