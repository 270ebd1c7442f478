use std::time::Duration;

use tokio::{sync::watch, time::Instant};

/// CLIENT PAUSE: holds commands back until a moment, or until CLIENT UNPAUSE.
pub struct Pause {
    state: watch::Sender<Option<(Paused, Instant)>>,
}

/// Which commands are held back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paused {
    /// Those that may write.
    Writes,
    /// All of them.
    All,
}

impl Pause {
    /// Nothing is held back.
    pub fn new() -> Self {
        Self { state: watch::Sender::new(None) }
    }

    /// Holds commands back for `duration` from now. A pause under way is never shortened or weakened.
    pub fn begin(&self, paused: Paused, duration: Duration) {
        let until = Instant::now() + duration;
        self.state.send_modify(|state| {
            *state = Some(match *state {
                Some((Paused::All, before)) if before > Instant::now() => (Paused::All, before.max(until)),
                Some((Paused::Writes, before)) if before > Instant::now() => (paused, before.max(until)),
                _ => (paused, until),
            });
        });
    }

    /// Lets everything go on.
    pub fn end(&self) {
        self.state.send_replace(None);
    }

    /// Returns when a command that writes, or one that does not, may run.
    pub async fn wait(&self, writes: bool) {
        if self.state.borrow().is_none() {
            return;
        }
        let mut state = self.state.subscribe();
        loop {
            let held_until = match *state.borrow_and_update() {
                Some((paused, until)) if writes || paused == Paused::All => until,
                _ => return,
            };
            tokio::select! {
                () = tokio::time::sleep_until(held_until) => return,
                _ = state.changed() => {}
            }
        }
    }
}

impl Default for Pause {
    fn default() -> Self {
        Self::new()
    }
}
