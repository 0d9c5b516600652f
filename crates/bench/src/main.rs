//! `annulus bench`: a program that measures vector search on any server of the index service's HTTP
//! API, and on any server of CQL.
//!
//! It is a program of its own, so that no server carries its readers of data sets and its charts.
//! `annulus bench` runs it.
//!
//! - [`annulus_bench::data`]: data sets in the field's formats, and the true neighbours of queries.
//! - [`load`]: the load generator.
//! - [`servers`]: servers that requests go to, by HTTP or CQL, and an index in this process.
//! - [`report`]: prints results, and writes them as JSON lines, an HTML page and charts.
//! - [`commands`]: the commands, a file for each.

#![warn(clippy::unwrap_used)]

/// Prints a line. A reader that has seen enough, such as `head`, is no failure.
macro_rules! say {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stdout(), $($text)*);
    }};
}

/// Prints a line to stderr, if that is open still.
macro_rules! complain {
    ($($text:tt)*) => {{
        use std::io::Write as _;
        let _ = writeln!(std::io::stderr(), $($text)*);
    }};
}

mod cli;
mod commands;
mod load;
mod proc;
mod report;
mod servers;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    match cli::run(cli::ProgramArguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            complain!("annulus bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}
