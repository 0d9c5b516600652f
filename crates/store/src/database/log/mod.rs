//! Following a log: what a reader is given, and how it reports.
//!
//! A reader gets a [`LogRun`], by which it hands on hints and reports how far it has read. The
//! [`ReaderProgress`] of the reader keeps these reports over its runs.

mod catch_up;
mod progress;
mod reader_series;
mod run;
mod streams;

pub(crate) use catch_up::CatchUp;
pub(crate) use progress::ReaderProgress;
pub(crate) use reader_series::ReaderSeries;
pub use run::LogRun;
