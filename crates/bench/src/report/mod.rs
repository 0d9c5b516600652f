//! Prints results to the terminal, and writes them as JSON lines, an HTML page with charts, and PNG
//! files of the charts.

mod axis;
mod canvas;
mod chart;
mod charts;
mod html;
mod measurement;
mod output;
mod warnings;

pub use measurement::Measurement;
pub use output::{
    OutputArguments, ResultOutput, progress_bar, read_records, write_charts, write_page,
};
