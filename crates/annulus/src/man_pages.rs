//! `annulus man`: prints the manual page of the program or of one of its commands, as roff.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::{Args, Command};
use clap_mangen::Man;

use crate::exit::ProcessFailure;
use crate::output;

#[derive(Args, Debug)]
pub struct ManArguments {
    /// The command whose page is printed; without it the page is that of the program
    #[arg(value_name = "COMMAND")]
    of: Option<String>,

    /// Write the pages of the program and of all its commands into this directory
    #[arg(long, value_name = "DIR", conflicts_with = "of")]
    out: Option<PathBuf>,
}

/// Prints or writes pages about `command`.
pub fn run(arguments: &ManArguments, command: Command) -> anyhow::Result<()> {
    let mut command = command.disable_help_subcommand(true);
    // Commands below it get their full names.
    command.build();
    match (&arguments.out, &arguments.of) {
        (Some(directory), _) => {
            fs::create_dir_all(directory)
                .with_context(|| format!("making {}", directory.display()))?;
            write_all(&command, directory)
        }
        (None, Some(name)) => match command.find_subcommand(name) {
            Some(of) => output::print(page(of)?),
            None => Err(ProcessFailure::Configuration(format!(
                "there is no command {name}: annulus --help lists them"
            ))
            .into()),
        },
        (None, None) => output::print(page(&command)?),
    }
}

fn page(command: &Command) -> anyhow::Result<String> {
    let mut page = Vec::new();
    Man::new(command.clone()).render(&mut page)?;
    Ok(String::from_utf8(page)?)
}

/// Writes the page of a command and those of the commands below it.
fn write_all(command: &Command, directory: &Path) -> anyhow::Result<()> {
    let name = command
        .get_display_name()
        .unwrap_or_else(|| command.get_name());
    let path = directory.join(format!("{name}.1"));
    fs::write(&path, page(command)?).with_context(|| format!("writing {}", path.display()))?;
    for below in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        write_all(below, directory)?;
    }
    Ok(())
}
