//! Traces of requests: the steps that a request took, each with the time at which it was reached.
//!
//! A request that enables tracing is answered within [`Trace::scope`]. Whatever works for it, in
//! any crate, calls [`note`] with what it does. Without a trace that is one look at a variable of
//! the task, and the text is not made. A trace that has ended is stored among [`FinishedTraces`],
//! from which `system_traces` is read.
//!
//! A trace has bounds. While its request runs it is charged to the client. Steps beyond a bound, or
//! beyond what the client may hold, are counted and not stored. Traces that have ended share one
//! bound in bytes, and the oldest make room for new ones.

#![warn(clippy::unwrap_used)]

mod history;
mod request_id;
mod trace;

pub use history::{FinishedTraces, TIME_TO_LIVE_S};
pub use request_id::{REQUEST_ID_HEADER, RequestId};
pub use trace::{
    FinishedTrace, RecordedStep, RequestDescription, Trace, carried, current, note, tell,
};
