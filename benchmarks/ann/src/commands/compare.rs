//! `bench-ann compare`: all contenders on several data sets.
use std::path::Path;
#[derive(clap::Args)]
pub struct Arguments {}
pub fn run(_arguments: &Arguments, _cache: &Path) -> anyhow::Result<()> {
    Ok(())
}
