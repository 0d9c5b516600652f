//! `annulus backup`, `annulus restore` and `annulus snapshot`.

pub mod backup;
mod list;
mod location;
mod progress;
pub mod restore;
pub mod snapshot;
mod status;

use anyhow::Context;

/// Runs work that reads files and sockets on several threads, as digests take a processor each.
fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("starting the threads")?
        .block_on(work)
}
