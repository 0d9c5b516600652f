//! `annulus completions`: prints the completions of the command line for a shell.

use clap::{Args, Command};
use clap_complete::Shell;

use crate::output;

#[derive(Args, Debug)]
pub struct CompletionsArguments {
    /// The shell that reads them
    #[arg(value_name = "SHELL")]
    shell: Shell,
}

/// Prints the completions of `command`.
pub fn run(arguments: &CompletionsArguments, mut command: Command) -> anyhow::Result<()> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut command, "annulus", &mut script);
    output::print(String::from_utf8(script)?)
}
