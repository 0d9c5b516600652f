//! The `annulus` binary: command line, configuration, wiring and signals. The crates below do the
//! work.

#![warn(clippy::unwrap_used)]

mod audit_log;
mod backup_commands;
mod backup_locations;
mod backups;
mod bench_program;
mod certificate;
mod cli;
mod completions;
mod core_dumps;
mod data_files;
mod doctor;
mod embedder_settings;
mod exit;
#[cfg(feature = "sample")]
mod films;
mod gateway_command;
mod gateway_settings;
mod gateway_tls;
mod guardrail_settings;
mod heap;
mod licences;
mod logging;
mod man_pages;
mod mcp_command;
mod memory_limit;
mod metrics;
#[cfg(test)]
mod metrics_page;
mod notify;
mod open_files;
mod operator;
mod output;
mod recover;
mod renewal;
mod role;
mod runtime_threads;
#[cfg(feature = "sample")]
mod sample;
#[cfg(feature = "sample")]
mod sample_loads;
mod scrub;
mod serve;
mod serve_console;
mod setting_lines;
mod settings;
mod settings_file;
#[cfg(test)]
mod settings_page;
mod settings_table;
mod settings_template;
mod shell_command;
mod shown_settings;
mod size;
mod span;
mod stop;
mod store_service;
mod tls_files;
mod vector_stores;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

fn main() -> ExitCode {
    heap::set_up();
    let command_line = cli::CommandLine::parse();
    match run(command_line) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            output::complain(format_args!("annulus: {error:#}"));
            exit::code_of(&error)
        }
    }
}

fn run(command_line: cli::CommandLine) -> anyhow::Result<()> {
    match command_line.command {
        cli::ProgramCommand::Serve(arguments) => serve::run(*arguments),
        cli::ProgramCommand::Backup(arguments) => backup_commands::backup::run(*arguments),
        cli::ProgramCommand::Restore(arguments) => backup_commands::restore::run(*arguments),
        cli::ProgramCommand::Snapshot(arguments) => backup_commands::snapshot::run(*arguments),
        cli::ProgramCommand::Gateway(arguments) => gateway_command::run(*arguments),
        cli::ProgramCommand::Check(arguments) => operator::check::run(*arguments),
        cli::ProgramCommand::Maintenance(arguments) => operator::maintenance::run(*arguments),
        cli::ProgramCommand::Mcp(flags) => mcp_command::run(*flags),
        cli::ProgramCommand::Repair(arguments) => operator::repair::run(*arguments),
        cli::ProgramCommand::Status(arguments) => operator::status::run(*arguments),
        cli::ProgramCommand::Tasks(arguments) => operator::task_commands::run(*arguments),
        // `annulus store` reads its settings again while it runs, so it also reads them itself at
        // the start.
        cli::ProgramCommand::Store(_) => store_service::run(),
        cli::ProgramCommand::Recover(arguments) => recover::run(arguments),
        cli::ProgramCommand::Role(arguments) => role::run(arguments),
        cli::ProgramCommand::Scrub(arguments) => scrub::run(*arguments),
        cli::ProgramCommand::Shell(flags) => shell_command::run(*flags),
        cli::ProgramCommand::Certificate(arguments) => certificate::run(&arguments),
        cli::ProgramCommand::Bench { arguments } => bench_program::run(&arguments),
        cli::ProgramCommand::Doctor(arguments) => doctor::run(*arguments),
        cli::ProgramCommand::Settings(arguments) => {
            settings_template::run(&arguments, &cli::CommandLine::command())
        }
        cli::ProgramCommand::Completions(arguments) => {
            completions::run(&arguments, cli::CommandLine::command())
        }
        cli::ProgramCommand::Man(arguments) => {
            man_pages::run(&arguments, cli::CommandLine::command())
        }
        cli::ProgramCommand::Import(flags) => data_files::import(*flags),
        cli::ProgramCommand::Export(flags) => data_files::export(*flags),
        cli::ProgramCommand::Licences => licences::run(),
    }
}
