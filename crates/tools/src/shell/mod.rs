//! `annulus shell`: CQL at a terminal, and in scripts.

use clap::Args;

use crate::{CqlFlags, ToolError};

/// Flags of `annulus shell`.
#[derive(Args, Clone, Debug)]
pub struct ShellFlags {
    #[command(flatten)]
    connection: CqlFlags,
}

/// Runs the shell.
///
/// # Errors
/// If the server can't be reached, or a statement fails.
pub async fn run(flags: ShellFlags) -> Result<(), ToolError> {
    flags.connection.connect().await?;
    Ok(())
}
