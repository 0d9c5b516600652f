//! What becomes of results: lines on the terminal, JSON lines, and an HTML page with charts.

mod chart;
mod html;
mod measurement;
mod output;

pub use measurement::{Environment, LatencyMs, Measurement, Moment, Record};
pub use output::{Output, OutputArguments, read_records, write_page};
