//! The `respgate` program.

use std::{error::Error, sync::Arc};

use respgate::{config::Settings, server::Server};
use respgate_backend_memory::MemoryBackend;
use tokio_util::sync::CancellationToken;

#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut settings = Settings::default();
    settings.server.port = std::env::args().nth(2).and_then(|port| port.parse().ok()).unwrap_or(6379);
    let server = Server::bind(Arc::new(settings), Arc::new(MemoryBackend::new())).await?;
    for address in server.addresses() {
        eprintln!("listening on {address}");
    }
    server.run(CancellationToken::new()).await;
    Ok(())
}
