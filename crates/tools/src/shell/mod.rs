//! `annulus shell`: CQL at a terminal, and in scripts.
//!
//! `splitter` cuts the input into statements and commands, `runner` carries them out, and
//! `answer` writes what comes back. At a terminal `editor` reads the input, else `input`.

mod answer;
mod building;
mod commands;
mod completion;
mod editor;
mod format;
mod help;
mod highlight;
mod input;
mod output;
mod rows;
mod runner;
mod splitter;
mod table;
mod tokens;

use std::io::{Cursor, IsTerminal as _, Read};
use std::sync::Arc;

use clap::Args;

use self::format::AnswerFormat;
use self::runner::{ShellFlow, ShellRunner};
use crate::{CqlFlags, ToolError};

/// Flags of `annulus shell`.
#[derive(Args, Clone, Debug)]
#[command(after_help = help::EXAMPLES)]
pub struct ShellFlags {
    /// Statements to execute; may be given several times
    #[arg(short = 'e', long, value_name = "CQL", conflicts_with = "file")]
    execute: Vec<String>,

    /// File of statements to execute; may be given several times. `-` is stdin
    #[arg(short = 'f', long, value_name = "FILE")]
    file: Vec<String>,

    /// Keyspace to use
    #[arg(short = 'k', long, value_name = "KEYSPACE")]
    keyspace: Option<String>,

    /// Write rows as JSON, an object a line
    #[arg(long, conflicts_with = "csv")]
    json: bool,

    /// Write rows as CSV, with a line of names
    #[arg(long)]
    csv: bool,

    #[command(flatten)]
    connection: CqlFlags,
}

impl ShellFlags {
    fn format(&self) -> AnswerFormat {
        match (self.json, self.csv) {
            (true, _) => AnswerFormat::Json,
            (false, true) => AnswerFormat::Csv,
            (false, false) => AnswerFormat::Table { is_expanded: false },
        }
    }
}

/// Runs the shell: the statements of the flags, else those of stdin, at a prompt if that is a
/// terminal.
///
/// # Errors
/// If the server can't be reached, or a statement of a script fails.
pub async fn run(flags: ShellFlags) -> Result<(), ToolError> {
    let session = flags.connection.connect().await?;
    if let Some(keyspace) = &flags.keyspace {
        let used = session.use_keyspace(keyspace, true).await;
        used.map_err(|error| ToolError::Statement(format!("--keyspace {keyspace}: {error}")))?;
    }
    let colours = output::has_colours();
    let format = flags.format();
    let mut runner = ShellRunner::new(Arc::new(session), flags.connection, format, colours);
    for (position, text) in flags.execute.iter().enumerate() {
        let origin = match flags.execute.len() {
            1 => "-e".to_owned(),
            _ => format!("-e ({})", position + 1),
        };
        let flow = run_text(&mut runner, &origin, Cursor::new(text.clone())).await?;
        if flow == ShellFlow::Quit {
            return Ok(());
        }
    }
    for path in &flags.file {
        let flow = match path.as_str() {
            "-" => run_text(&mut runner, "stdin", std::io::stdin()).await?,
            path => runner.run_file(path).await?,
        };
        if flow == ShellFlow::Quit {
            return Ok(());
        }
    }
    if !flags.execute.is_empty() || !flags.file.is_empty() {
        return Ok(());
    }
    match std::io::stdin().is_terminal() {
        true => runner.run_prompt().await,
        false => run_text(&mut runner, "stdin", std::io::stdin())
            .await
            .map(|_| ()),
    }
}

async fn run_text(
    runner: &mut ShellRunner,
    origin: &str,
    text: impl Read + Send + 'static,
) -> Result<ShellFlow, ToolError> {
    let pieces = input::pieces(text);
    let pieces = pieces.map_err(|error| ToolError::File(format!("{origin}: {error}")))?;
    runner.run_input(origin, pieces).await
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: ShellFlags,
    }

    fn parsed(arguments: &[&str]) -> Result<ShellFlags, clap::Error> {
        let words = std::iter::once("shell").chain(arguments.iter().copied());
        Program::try_parse_from(words).map(|program| program.flags)
    }

    #[test]
    fn flags_choose_the_form() {
        let format = |arguments: &[&str]| parsed(arguments).unwrap().format();
        assert_eq!(format(&["--json"]), AnswerFormat::Json);
        assert_eq!(format(&["--csv"]), AnswerFormat::Csv);
        assert_eq!(format(&[]), AnswerFormat::Table { is_expanded: false });
        assert!(parsed(&["--csv", "--json"]).is_err());
        assert!(parsed(&["-e", "x", "-f", "y"]).is_err());
        assert_eq!(parsed(&["-e", "a", "-e", "b"]).unwrap().execute.len(), 2);
    }
}
