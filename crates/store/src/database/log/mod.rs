//! Following a log: what a reader is given, and how it reports.
//!
//! A reader gets a [`LogRun`], by which it hands on hints and reports how far it has read. The
//! [`Progress`] of the reader keeps these reports over its runs.

mod catch_up;
mod progress;
mod reader_series;
mod run;
mod streams;

pub use catch_up::CatchUp;
pub use progress::Progress;
pub use reader_series::ReaderSeries;
pub use run::LogRun;
