//! Ending a capture from outside.

use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Tells a capture that nobody needs it any more.
#[derive(Debug, Default)]
pub struct Cancel {
    cancelled: Mutex<bool>,
    changed: Condvar,
}

impl Cancel {
    /// From now on it is cancelled.
    pub fn cancel(&self) {
        *self.cancelled.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Whether it is.
    pub fn is_cancelled(&self) -> bool {
        *self.cancelled.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sleeps, and says whether it slept to the end.
    pub fn sleep(&self, time: Duration) -> bool {
        let cancelled = self.cancelled.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self
            .changed
            .wait_timeout_while(cancelled, time, |cancelled| !*cancelled);
        let (cancelled, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !*cancelled
    }
}
