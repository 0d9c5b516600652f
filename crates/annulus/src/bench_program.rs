//! `annulus bench`: replaces this process by the program `annulus-bench`.
//!
//! The bench is a program of its own, so that a server has no readers of data sets and no charts.

use std::env::consts::EXE_SUFFIX;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::Context;

use crate::exit::ProcessFailure;

const PROGRAM: &str = "annulus-bench";

/// Runs `annulus-bench` with these arguments: the one in this program's folder, or one on the PATH.
/// Returns only if it can't be started.
pub fn run(arguments: &[OsString]) -> anyhow::Result<()> {
    let this = std::env::current_exe().context("finding this program's file")?;
    let beside = this.with_file_name(format!("{PROGRAM}{EXE_SUFFIX}"));
    let program = match beside.exists() {
        true => beside.clone(),
        false => PathBuf::from(PROGRAM),
    };
    let error = Command::new(&program).args(arguments).exec();
    if error.kind() == ErrorKind::NotFound {
        let folder = beside.parent().unwrap_or(Path::new("."));
        return Err(ProcessFailure::Configuration(format!(
            "`annulus bench` is a program of its own, {PROGRAM}, which is neither in {} nor on the PATH: `make dist` builds both",
            folder.display()
        ))
        .into());
    }
    Err(error).with_context(|| format!("starting {}", program.display()))
}
