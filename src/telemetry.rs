//! Logging. What clients send and what they store is never logged: lines speak of connections, limits and the store.

use tracing_subscriber::{EnvFilter, filter::ParseError, fmt};

use crate::config::{LogFormat, LogSettings};

/// Sends the log to standard error, as `settings` say.
///
/// # Errors
/// The filter cannot be understood.
pub fn start(settings: &LogSettings) -> Result<(), ParseError> {
    let filter = EnvFilter::builder().parse(&settings.filter)?;
    let log = fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match settings.format {
        LogFormat::Human => log.with_ansi(std::io::IsTerminal::is_terminal(&std::io::stderr())).init(),
        LogFormat::Json => log.json().init(),
    }
    Ok(())
}
