use std::{
    cell::RefCell,
    io, mem,
    pin::{Pin, pin},
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use bytes::{Buf, BytesMut};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};

use super::pipeline::Pipeline;
use crate::{client::Client, command::Gateway};

/// Bytes that one read takes at most.
const READ_BYTES_MAX: usize = 64 * 1024;

/// Replies beyond this are sent before more requests are carried out.
const OUTPUT_BYTES_SOFT_MAX: usize = 256 * 1024;

/// What an idle connection may keep of its buffers; there may be very many idle connections.
const IDLE_BUFFER_BYTES_MAX: usize = 4 * 1024;

thread_local! {
    /// Where reads land first, so that a connection that waits for its client owns no buffer.
    static SCRATCH: RefCell<Box<[u8]>> = RefCell::new(vec![0; READ_BYTES_MAX].into_boxed_slice());
}

/// Serves one client until it goes, is killed, idles too long, or the gateway shuts down.
pub(super) async fn serve<S>(stream: S, client: Arc<Client>, gateway: Arc<Gateway>)
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let registered = Registered { client: Arc::clone(&client), gateway: Arc::clone(&gateway) };
    let mut connection = Connection {
        stream,
        input: BytesMut::new(),
        output: BytesMut::new(),
        input_closed: false,
        input_bytes_max: gateway.settings().server.input_buffer_max.as_usize(),
    };
    let mut pipeline = Pipeline::new(client, gateway);
    match converse(&mut connection, &mut pipeline, &registered).await {
        Ok(reason) => tracing::debug!(reason, "closed"),
        Err(error) => tracing::debug!(%error, "lost"),
    }
}

/// Takes the client off the list when its task ends, in whatever way.
struct Registered {
    client: Arc<Client>,
    gateway: Arc<Gateway>,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.gateway.clients.remove(&self.client);
    }
}

/// Reads, runs units and writes replies. Returns why the conversation is over.
async fn converse<S>(
    connection: &mut Connection<S>,
    pipeline: &mut Pipeline,
    registered: &Registered,
) -> io::Result<&'static str>
where
    S: AsyncRead + AsyncWrite + Unpin + Send,
{
    let Registered { client, gateway } = registered;
    let (mut killed, mut stopped) = (pin!(client.killed()), pin!(client.stopped()));
    loop {
        let mut ran = true;
        while ran && connection.output.len() < OUTPUT_BYTES_SOFT_MAX && !pipeline.is_closing() && !client.is_killed() {
            ran = pipeline.run_unit(&mut connection.input, &mut connection.output).await;
        }
        if client.is_killed() {
            return Ok("killed");
        }
        if pipeline.is_closing() {
            connection.finish().await?;
            return Ok("by the gateway");
        }
        if connection.input_closed && !ran {
            connection.finish().await?;
            return Ok("by the client");
        }
        if connection.is_input_full() && !ran {
            return Ok("input buffer full");
        }
        if !connection.output.is_empty() {
            // First everybody's requests that have come, then everybody's replies: a client that serves many connections
            // is woken once for all of them, and finds more to do at a time. Redis does the same.
            tokio::task::yield_now().await;
        }
        let idle_timeout = gateway.settings().server.idle_timeout.as_duration();
        let (read, written) = tokio::select! {
            biased;
            () = &mut killed => return Ok("killed"),
            // The unit in flight has ended; what it replied still goes out.
            () = &mut stopped, if !pipeline.is_streaming() => {
                connection.finish().await?;
                return Ok("stopped");
            }
            moved = connection.exchange(ran) => moved?,
            () = idle(idle_timeout) => return Ok("idle"),
        };
        gateway.statistics.bytes_in.add(read);
        gateway.statistics.bytes_out.add(written);
    }
}

/// Returns when a connection has idled for too long: never if `timeout` is zero.
async fn idle(timeout: Duration) {
    if timeout.is_zero() {
        std::future::pending::<()>().await;
    }
    tokio::time::sleep(timeout).await;
}

/// A stream and the bytes on their way in and out.
struct Connection<S> {
    stream: S,
    input: BytesMut,
    output: BytesMut,
    /// The client will send no more.
    input_closed: bool,
    input_bytes_max: usize,
}

impl<S: AsyncRead + AsyncWrite + Unpin> Connection<S> {
    /// Moves bytes until all output is written and there may be work to do: more input, or requests that had to wait
    /// for the output (`has_work`). Returns how many bytes came in and went out.
    ///
    /// Input is taken while output waits: a client that sends a long pipeline before it reads any reply would
    /// otherwise wait for us while we wait for it.
    async fn exchange(&mut self, has_work: bool) -> io::Result<(u64, u64)> {
        let (mut read, mut written) = (0, 0);
        std::future::poll_fn(|cx| {
            let is_written = self.poll_write(cx, &mut written)?.is_ready();
            self.read_available(cx, &mut read, is_written)?;
            if is_written && (has_work || read > 0 || self.input_closed) {
                return Poll::Ready(Ok((read, written)));
            }
            self.shrink();
            Poll::Pending
        })
        .await
    }

    /// True if no more input is taken.
    fn is_input_full(&self) -> bool {
        self.input.len() >= self.input_bytes_max
    }

    /// Writes until there is no output left, then flushes and closes.
    async fn finish(&mut self) -> io::Result<()> {
        self.stream.write_all_buf(&mut self.output).await?;
        self.stream.shutdown().await
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, written: &mut u64) -> Poll<io::Result<()>> {
        if self.output.is_empty() {
            return Poll::Ready(Ok(()));
        }
        while !self.output.is_empty() {
            let count = ready!(Pin::new(&mut self.stream).poll_write(cx, &self.output))?;
            if count == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            self.output.advance(count);
            *written += count as u64;
        }
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// Reads what there is. Unless a first piece is enough (`one_piece`), the task is woken when more comes.
    fn read_available(&mut self, cx: &mut Context<'_>, read: &mut u64, one_piece: bool) -> io::Result<()> {
        SCRATCH.with_borrow_mut(|scratch| {
            while !self.input_closed && !self.is_input_full() {
                let mut buffer = ReadBuf::new(scratch);
                let Poll::Ready(result) = Pin::new(&mut self.stream).poll_read(cx, &mut buffer) else { break };
                result?;
                let bytes = buffer.filled();
                self.input_closed = bytes.is_empty();
                self.input.extend_from_slice(bytes);
                *read += bytes.len() as u64;
                if one_piece {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Gives back buffers that a waiting connection does not need.
    fn shrink(&mut self) {
        for buffer in [&mut self.input, &mut self.output] {
            if buffer.is_empty() && buffer.capacity() > IDLE_BUFFER_BYTES_MAX {
                drop(mem::take(buffer));
            }
        }
    }
}
