//! `report`: writes an HTML page of results that were stored as JSON lines.

use std::path::PathBuf;

use clap::Args;

use crate::report::{read_records, write_charts, write_page};

/// The arguments of `report`.
#[derive(Args, Debug)]
pub struct ReportArguments {
    /// Files that --json wrote
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// The page to write
    #[arg(long, short, value_name = "FILE", default_value = "report.html")]
    output: PathBuf,
    /// Write each chart into this directory, as PNG
    #[arg(long, value_name = "DIR")]
    png: Option<PathBuf>,
}

/// Writes the page, and the charts if a directory is given. Prints their paths.
pub fn run(arguments: &ReportArguments) -> anyhow::Result<()> {
    let mut records = Vec::new();
    for file in &arguments.files {
        records.extend(read_records(file)?);
    }
    write_page(&arguments.output, &records)?;
    say!("{}", arguments.output.display());
    if let Some(directory) = &arguments.png {
        for path in write_charts(directory, &records)? {
            say!("{}", path.display());
        }
    }
    Ok(())
}
