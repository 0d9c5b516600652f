//! The trace of a run.

use std::sync::{Arc, Mutex, PoisonError};

use clock::Clock;

use crate::clock::SimulatedClock;

/// The things that were done, and their outcomes, each with the time since the beginning of the
/// run. So two runs that do the same at other times have other traces. Clones are the same trace.
#[derive(Clone)]
pub struct Trace {
    lines: Arc<Mutex<Vec<String>>>,
    clock: Arc<SimulatedClock>,
}

impl Trace {
    /// An empty trace.
    pub fn new(clock: Arc<SimulatedClock>) -> Trace {
        Trace {
            lines: Arc::default(),
            clock,
        }
    }

    /// Adds a line.
    pub fn tell(&self, line: String) {
        let millis = self.clock.steady_micros() as f64 / 1000.0;
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.push(format!("{millis:.3} ms: {line}"));
    }

    /// All lines.
    pub fn lines(&self) -> Vec<String> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.clone()
    }
}
