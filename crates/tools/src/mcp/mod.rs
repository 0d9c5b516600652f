//! `annulus mcp`: tables and searches as tools of a language model, by the Model Context Protocol.
//!
//! A program that runs a model (an MCP client) starts this one and speaks with it over its standard
//! input and output, a JSON object a line. Stdout has nothing but the protocol; what goes wrong
//! before it begins is on stderr.
//!
//! | module | part |
//! | --- | --- |
//! | `server` | the protocol: the list of tools, a call, its time limit and its end by the client |
//! | `tool_list` | the tools as a model sees them: names, descriptions, arguments |
//! | `catalog` | `list_tables`, `list_indexes`, `describe`: what the schema tables of CQL show |
//! | `search` | `search`: one SELECT made of a search's parts, with all values bound |
//! | `statement` | `cql`: which statements may pass |
//! | `reading` | a statement's pages, up to the bounds of an answer |
//! | `answer` | rows as JSON within the bounds |
//! | `failure` | errors with a remedy, as a model reads them |

mod answer;
mod catalog;
mod failure;
mod reading;
mod search;
mod server;
mod statement;
mod tool_list;

use std::io::IsTerminal;
use std::time::Duration;

use clap::Args;
use rmcp::ServiceExt;
use rmcp::service::ServerInitializeError;
use rmcp::transport::stdio;

use self::answer::AnswerBounds;
use self::server::DatabaseTools;
use crate::{CqlFlags, ToolError};

/// Flags of `annulus mcp`.
#[derive(Args, Clone, Debug)]
pub struct McpFlags {
    /// Let the tool `cql` carry out every statement, also those that change something. What a role
    /// may do is up to its permissions (--user)
    #[arg(long)]
    allow_writes: bool,

    /// The most rows of an answer
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1_000,
        value_parser = clap::value_parser!(u32).range(1..=100_000)
    )]
    max_rows: u32,

    /// The most bytes of an answer
    #[arg(
        long,
        value_name = "BYTES",
        default_value_t = 256 * 1024,
        value_parser = clap::value_parser!(u32).range(1_024..=64 * 1024 * 1024)
    )]
    max_bytes: u32,

    /// The longest time that a call may take, in seconds
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 10,
        value_parser = clap::value_parser!(u32).range(1..=600)
    )]
    timeout: u32,

    #[command(flatten)]
    connection: CqlFlags,
}

/// Serves one client over stdin and stdout, until it closes them.
///
/// The session with the CQL server is opened by the first call that needs it, so that a client may
/// start this program before the server runs.
///
/// # Errors
/// If stdin is a terminal, or what comes over it is another protocol.
pub async fn run(flags: McpFlags) -> Result<(), ToolError> {
    if std::io::stdin().is_terminal() {
        return Err(ToolError::Usage(
            "`annulus mcp` is started by a program that runs a language model, which speaks with it over its stdin \
             and stdout: name it in that program's settings, as docs/for-agents.md shows"
                .to_owned(),
        ));
    }
    let bounds = AnswerBounds {
        rows: flags.max_rows as usize,
        bytes: flags.max_bytes as usize,
    };
    let longest = Duration::from_secs(flags.timeout.into());
    let tools = DatabaseTools::new(flags.connection, flags.allow_writes, bounds, longest);
    match tools.serve(stdio()).await {
        Ok(service) => {
            let ended = service.waiting().await;
            ended.map(drop).map_err(|error| of_protocol(&error))
        }
        // The client left without a word.
        Err(ServerInitializeError::ConnectionClosed(_)) => Ok(()),
        Err(error) => Err(of_protocol(&error)),
    }
}

fn of_protocol(error: &dyn std::error::Error) -> ToolError {
    ToolError::Connection(format!(
        "what speaks over stdin is no client of the Model Context Protocol: {error}; docs/for-agents.md shows the \
         settings of some"
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: McpFlags,
    }

    fn parsed(arguments: &[&str]) -> Result<McpFlags, clap::Error> {
        let words = std::iter::once("program").chain(arguments.iter().copied());
        Program::try_parse_from(words).map(|program| program.flags)
    }

    #[test]
    fn writes_need_their_flag_and_bounds_have_defaults() {
        let flags = parsed(&[]).unwrap();
        assert!(!flags.allow_writes);
        let bounds = (flags.max_rows, flags.max_bytes, flags.timeout);
        assert_eq!(bounds, (1_000, 262_144, 10));
        assert!(parsed(&["--allow-writes"]).unwrap().allow_writes);
    }

    #[test]
    fn bounds_of_nothing_are_refused() {
        for flag in ["--max-rows", "--max-bytes", "--timeout"] {
            assert!(parsed(&[flag, "0"]).is_err(), "{flag}");
        }
    }
}
