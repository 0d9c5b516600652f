//! `annulus mcp`: tables and searches as tools of a language model.

use tools::mcp::{self, McpFlags};

use crate::operator::block_on;

/// Runs `annulus mcp`.
pub fn run(flags: McpFlags) -> anyhow::Result<()> {
    block_on(async { Ok(mcp::run(flags).await?) })
}
