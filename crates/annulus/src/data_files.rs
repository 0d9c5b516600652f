//! `annulus import` and `annulus export`.

use anyhow::Context as _;
use tools::ToolError;
use tools::export::ExportFlags;
use tools::import::ImportFlags;

/// The threads of the driver: one reads and writes sockets while the other makes frames.
const THREADS: usize = 2;

/// Runs `annulus import`.
pub fn import(flags: ImportFlags) -> anyhow::Result<()> {
    block_on(tools::import::run(flags))
}

/// Runs `annulus export`.
pub fn export(flags: ExportFlags) -> anyhow::Result<()> {
    block_on(tools::export::run(flags))
}

fn block_on(work: impl Future<Output = Result<(), ToolError>>) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(THREADS)
        .enable_all()
        .build()
        .context("starting the threads")?;
    let done = runtime.block_on(work);
    // A thread may wait for a pipe that no one writes to.
    runtime.shutdown_background();
    Ok(done?)
}
