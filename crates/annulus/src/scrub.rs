//! `annulus scrub`: reads every file and checks every checksum, of a running service or of a
//! stopped server's directory.

use std::path::{Path, PathBuf};

use clap::Args;
use storage::StorageError;
use store::ReadRateLimiter;
use store_api::types::ScrubRequest;

use crate::operator::progress::TerminalBar;
use crate::operator::task_commands::follow;
use crate::operator::{ServiceArguments, block_on};
use crate::output;

const MIB: u64 = 1 << 20;

#[derive(Args, Debug)]
pub struct ScrubArguments {
    #[command(flatten)]
    asking: ServiceArguments,

    /// The data directory of a stopped server; without it the running service checks its files
    #[arg(value_name = "DIR", conflicts_with = "detach")]
    directory: Option<PathBuf>,

    /// Directory with the files of that server's indexes [default: indexes in DIR]
    #[arg(long, value_name = "DIR", requires = "directory")]
    index_dir: Option<PathBuf>,

    /// MiB to read in a second [default: 32 for a service, no limit for DIR]
    #[arg(long, value_name = "MIB")]
    rate: Option<u64>,

    /// Return at once with the task, without waiting for its end
    #[arg(long)]
    detach: bool,
}

/// Runs `annulus scrub`.
pub fn run(arguments: ScrubArguments) -> anyhow::Result<()> {
    match &arguments.directory {
        Some(directory) => stopped(directory, &arguments),
        None => block_on(running(&arguments)),
    }
}

fn stopped(directory: &Path, arguments: &ScrubArguments) -> anyhow::Result<()> {
    let rate = arguments.rate.map(|rate| rate.max(1).saturating_mul(MIB));
    let indexes = match &arguments.index_dir {
        Some(directory) => directory.clone(),
        None => directory.join("indexes"),
    };
    let bar = TerminalBar::of_bytes(
        "scrub",
        bytes_below(directory) + bytes_elsewhere(&indexes, directory),
    );
    let mut pace = ReadRateLimiter::new(rate);
    let mut pass = |bytes| {
        bar.add(bytes);
        pace.keep(bytes, &|| true)
    };
    let found = storage::scrub(directory, &mut pass).map_err(|error| match error {
        StorageError::Locked(text) => StorageError::Locked(format!(
            "{text}: its server scrubs it while it runs, `annulus scrub --http http://127.0.0.1:6080`"
        )),
        other => other,
    })?;
    let snapshots = store::check_snapshots(&indexes, &mut pass);
    let faults = found.faults.iter().map(ToString::to_string);
    let faults: Vec<String> = faults.chain(snapshots.faults).collect();
    bar.end();
    for fault in &faults {
        output::print(format_args!("{fault}\n"))?;
    }
    let (files, bytes) = (found.files + snapshots.files, found.bytes + snapshots.bytes);
    output::print(format_args!("{files} files, {bytes} bytes read\n"))?;
    if faults.is_empty() {
        return Ok(());
    }
    let remedy = match found.faults.is_empty() {
        true => "delete the snapshots that are named, and the next start builds their indexes anew",
        false => "restore the directory from a backup",
    };
    let count = faults.len();
    let text = format!("files that are not as they were written: {count}; {remedy}");
    Err(StorageError::Corrupt(text).into())
}

/// The bytes of all files below a directory; those that can't be looked at count nothing.
fn bytes_below(directory: &Path) -> u64 {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let bytes = entries.map(|entry| match entry.metadata() {
        Ok(metadata) if metadata.is_dir() => bytes_below(&entry.path()),
        Ok(metadata) => metadata.len(),
        Err(_) => 0,
    });
    bytes.sum()
}

/// The bytes below a directory that is not within another one.
fn bytes_elsewhere(directory: &Path, other: &Path) -> u64 {
    match directory.starts_with(other) {
        true => 0,
        false => bytes_below(directory),
    }
}

async fn running(arguments: &ScrubArguments) -> anyhow::Result<()> {
    let asking = &arguments.asking;
    let client = asking.client().await?;
    let request = ScrubRequest {
        mib_per_second: arguments.rate,
    };
    let task = client.scrub(request).await;
    let task = task.map_err(|error| asking.explain(error))?;
    follow(asking, &client, task, arguments.detach).await
}
