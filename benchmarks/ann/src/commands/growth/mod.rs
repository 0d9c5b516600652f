//! `bench-ann growth`: measures builds, memory and searches with growing numbers of vectors.
//!
//! The sets are of one recipe (`mixture96-N`): a smaller one is the beginning of a larger one, and
//! the queries are the same. So only the number of vectors differs. All runs in process, without a
//! server: a server adds the same to each search, however many vectors there are.

mod fit;
mod size;
mod tables;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use serde::Serialize;

use self::size::Size;

/// The recalls at which searches are compared.
const RECALLS: [f64; 2] = [0.95, 0.99];

/// Tables go to standard output as Markdown when all has been measured.
#[derive(clap::Args)]
pub struct Arguments {
    /// Numbers of vectors, ascending
    #[arg(
        long,
        short,
        value_delimiter = ',',
        default_value = "10000,30000,100000,300000,1000000"
    )]
    sizes: Vec<usize>,
    /// The contender to measure
    #[arg(long, short, default_value = "annulus")]
    contender: String,
    /// Neighbours asked for, at most 100
    #[arg(long, short, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=100))]
    k: u64,
    /// Timed rounds
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u64).range(1..))]
    rounds: u64,
    /// Threads that build [default: the number of cores]
    #[arg(long)]
    threads: Option<usize>,
    /// Append JSON lines to this file: one of the type `growth` for each size, and the points of
    /// charts for `annulus bench report`
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
}

/// A point of a chart, as `annulus bench report` reads it.
#[derive(Serialize)]
struct Point<'a> {
    r#type: &'static str,
    chart: &'a str,
    x_label: &'static str,
    y_label: &'a str,
    logarithmic: bool,
    series: &'a str,
    x: f64,
    y: f64,
}

/// Measures each number of vectors, appends the results to the file, and prints tables.
pub fn run(arguments: &Arguments, cache: &Path) -> anyhow::Result<()> {
    ensure!(
        arguments.sizes.is_sorted() && !arguments.sizes.is_empty(),
        "--sizes must be ascending"
    );
    let threads = match arguments.threads {
        Some(threads) => threads,
        None => std::thread::available_parallelism()?.get(),
    };
    let mut sizes = Vec::new();
    for &vectors in &arguments.sizes {
        let size = Size::measure(arguments, vectors, threads, cache)?;
        if let Some(path) = &arguments.json {
            write(path, arguments, &size)?;
        }
        sizes.push(size);
    }
    tables::print(&sizes);
    Ok(())
}

fn write(path: &Path, arguments: &Arguments, size: &Size) -> anyhow::Result<()> {
    let mut lines = vec![serde_json::to_string(size)?];
    for quantity in fit::QUANTITIES {
        let Some(y) = (quantity.of)(size) else {
            continue;
        };
        lines.push(serde_json::to_string(&Point {
            r#type: "point",
            chart: quantity.chart,
            x_label: "vectors",
            y_label: quantity.unit,
            logarithmic: true,
            series: &format!("{}, {}", arguments.contender, quantity.name),
            x: size.vectors as f64,
            y,
        })?);
    }
    let append = || {
        let mut file = OpenOptions::new().create(true).append(true).open(path)?;
        file.write_all((lines.join("\n") + "\n").as_bytes())
    };
    append().with_context(|| path.display().to_string())
}
