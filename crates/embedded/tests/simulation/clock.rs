//! Simulated time: that of the runtime, which passes when nothing else is left to do, and steps of
//! the clock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use clock::Clock;
use tokio::time::Instant;

/// The time of the start, 2023-11-14.
const START_MICROS: i64 = 1_700_000_000_000_000;

/// Lets so much simulated time pass, which takes none.
pub async fn pass(millis: u64) {
    tokio::time::sleep(Duration::from_millis(millis)).await;
}

/// The machine's clock. It goes on through the processes of the service, each of which has a
/// runtime of its own.
#[derive(Debug)]
pub struct SimulatedClock(Mutex<State>);

#[derive(Debug)]
struct State {
    /// The beginning of this process.
    began: Option<Instant>,
    now_micros: i64,
    steady_micros: i64,
}

impl SimulatedClock {
    pub fn new() -> Arc<SimulatedClock> {
        Arc::new(SimulatedClock(Mutex::new(State {
            began: None,
            now_micros: START_MICROS,
            steady_micros: 0,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins a process. It is called inside the process's runtime.
    pub fn begin(&self) {
        self.state().began = Some(Instant::now());
    }

    /// Ends a process. It is called inside the process's runtime.
    pub fn end(&self) {
        let mut state = self.state();
        let passed = state.passed();
        state.now_micros += passed;
        state.steady_micros += passed;
        state.began = None;
    }

    /// Sets the clock, forward or back.
    pub fn step(&self, micros: i64) {
        self.state().now_micros += micros;
    }
}

impl State {
    fn passed(&self) -> i64 {
        self.began
            .map_or(0, |began| began.elapsed().as_micros() as i64)
    }
}

impl Clock for SimulatedClock {
    fn now_micros(&self) -> i64 {
        let state = self.state();
        state.now_micros + state.passed()
    }

    fn steady_micros(&self) -> i64 {
        let state = self.state();
        state.steady_micros + state.passed()
    }
}
