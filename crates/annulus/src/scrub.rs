//! `annulus scrub`: reads every file of a stopped server's rows and checks every checksum.

use std::path::PathBuf;

use clap::Args;
use storage::StorageError;

const MIB: u64 = 1 << 20;

#[derive(Args, Debug)]
pub struct ScrubArguments {
    /// The data directory of a server that is stopped
    #[arg(value_name = "DIR")]
    directory: PathBuf,

    /// MiB to read in a second; without it as fast as the disk goes
    #[arg(long, value_name = "MIB")]
    rate: Option<u64>,
}

pub fn run(arguments: ScrubArguments) -> anyhow::Result<()> {
    let rate = arguments.rate.map(|rate| rate.max(1).saturating_mul(MIB));
    let report = storage::scrub(&arguments.directory, rate)?;
    for fault in &report.faults {
        println!("{fault}");
    }
    println!("{} files, {} bytes read", report.files, report.bytes);
    if report.faults.is_empty() {
        return Ok(());
    }
    Err(StorageError::Corrupt(format!(
        "{} files are not as they were written: restore the directory from a backup",
        report.faults.len()
    ))
    .into())
}
