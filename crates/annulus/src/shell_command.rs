//! `annulus shell`: CQL at a prompt, or of a script.

use tools::shell::{self, ShellFlags};

use crate::operator::block_on;

/// Runs `annulus shell`.
pub fn run(flags: ShellFlags) -> anyhow::Result<()> {
    block_on(async { Ok(shell::run(flags).await?) })
}
