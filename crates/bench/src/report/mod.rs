//! What becomes of results: lines on the terminal, JSON lines, an HTML page with charts, and the charts as PNG.

mod axis;
mod canvas;
mod chart;
mod charts;
mod html;
mod measurement;
mod output;
mod warnings;

pub use measurement::Measurement;
pub use output::{Output, OutputArguments, read_records, write_charts, write_page};
