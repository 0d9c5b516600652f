//! `annulus settings`: prints a file of settings for `--config`, with every setting of a server and
//! its meaning, each commented out. It is made of the tables that make the flags.

use std::fmt::Write as _;

use anyhow::Context;
use clap::{Arg, Args, Command, ValueEnum};
use node::guardrails::Guardrails;

use crate::guardrail_settings::GuardrailSettings;
use crate::output;
use crate::setting_lines::default_in;

/// The widest line of a comment.
const COLUMNS: usize = 98;

#[derive(Args, Debug)]
pub struct TemplateArguments {
    /// The server that reads the file
    #[arg(value_name = "SERVER", default_value = "serve")]
    server: TemplateServer,
}

/// The servers that read a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum TemplateServer {
    /// The file of `annulus serve`
    Serve,
    /// The file of `annulus store`
    Store,
    /// The file of `annulus gateway`
    Gateway,
}

/// Flags of a gateway that may be given several times: the flag, its table in the file, and a line
/// of that table.
const PAIR_TABLES: [(&str, &str, &str); 2] = [
    (
        "gateway",
        "gateways",
        "\"10.0.0.1:9042\" = \"10.0.1.1:9043\"",
    ),
    (
        "vector-store-zone",
        "vector-store-zones",
        "\"http://10.0.0.1:6080\" = \"a\"",
    ),
];

/// Prints the file. `command` is the whole command line.
pub fn run(arguments: &TemplateArguments, command: &Command) -> anyhow::Result<()> {
    output::print(template(arguments.server, command)?)
}

fn template(server: TemplateServer, command: &Command) -> anyhow::Result<String> {
    let name = match server {
        TemplateServer::Serve => "serve",
        TemplateServer::Store => "store",
        TemplateServer::Gateway => "gateway",
    };
    let command = command.find_subcommand(name).context("finding a server")?;
    let mut text = format!(
        "# Settings of `annulus {name}`, read with --config or ANNULUS_CONFIG. A flag and a variable\n\
         # of the environment go before a line of this file. Take away the # before a setting to set\n\
         # it. Durations are written 500ms, 10s, 1m 30s, 7d; memory as bytes or 4GiB.\n"
    );
    for argument in command.get_arguments() {
        if let Some(long) = argument.get_long()
            && argument.get_env().is_some()
            && long != "config"
            && PAIR_TABLES.iter().all(|(flag, ..)| *flag != long)
        {
            text.push_str(&setting(long, argument));
        }
    }
    // Tables come last, as all lines after the name of a table belong to it.
    match server {
        TemplateServer::Serve => text.push_str(&thresholds()?),
        TemplateServer::Store => {}
        TemplateServer::Gateway => text.push_str(&tables_of_gateway(command)),
    }
    Ok(text)
}

/// The whole help of a flag.
fn help(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    help.map(ToString::to_string).unwrap_or_default()
}

/// A setting with its comment.
fn setting(name: &str, argument: &Arg) -> String {
    let help = help(argument);
    let default = default_in(&help);
    let words = argument.get_possible_values();
    let mut comment = help.clone();
    let is_boolean = words.iter().any(|word| word.get_name() == "true");
    if !words.is_empty() && !is_boolean {
        let words: Vec<&str> = words.iter().map(|word| word.get_name()).collect();
        let _ = write!(comment, " ({})", words.join(", "));
    }
    format!(
        "\n{}#{name} = {}\n",
        wrapped(&comment),
        value(argument, default)
    )
}

/// The default as TOML. Where it is no value, an example, or the form of one in `<>`.
fn value(argument: &Arg, default: &str) -> String {
    let first = default.split(' ').next().unwrap_or_default();
    let number = first.trim_end_matches(',');
    let is_number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let words = argument.get_possible_values();
    let value = match default {
        _ if is_number(number) => number.to_owned(),
        "" | "none" | "never" => String::new(),
        default if default.contains(' ') => String::new(),
        default => default.to_owned(),
    };
    let value = match (value.is_empty(), words.first()) {
        (false, _) => value,
        (true, Some(word)) => word.get_name().to_owned(),
        (true, None) => {
            let names = argument.get_value_names().unwrap_or_default();
            let names: Vec<&str> = names.iter().map(|name| name.as_str()).collect();
            format!("<{}>", names.join(" "))
        }
    };
    let written = match is_number(&value) || ["true", "false"].contains(&value.as_str()) {
        true => value,
        false => format!("{value:?}"),
    };
    match argument.get_value_delimiter() {
        Some(_) => format!("[{written}]"),
        None => written,
    }
}

/// A text as lines of a comment.
fn wrapped(text: &str) -> String {
    let mut lines = String::new();
    let mut line = String::new();
    for word in text.split_whitespace() {
        if !line.is_empty() && line.len() + 1 + word.len() > COLUMNS {
            let _ = writeln!(lines, "# {line}");
            line.clear();
        }
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
    }
    let _ = writeln!(lines, "# {line}");
    lines
}

/// The table of guardrails with its defaults.
fn thresholds() -> anyhow::Result<String> {
    let settings = GuardrailSettings::default();
    let limits = settings.resolve()?;
    let guardrails =
        Guardrails::new(|guardrail| limits.get(&guardrail).copied().unwrap_or_default());
    let mut text = "\n# Thresholds at which clients are warned and requests refused; -1 for none \
                    (guardrails.md).\n#[guardrails]\n"
        .to_owned();
    for threshold in settings.shown(&guardrails) {
        let _ = writeln!(text, "#{} = {}", threshold.name, threshold.value);
    }
    Ok(text)
}

/// The tables of a gateway's file, each with a line as an example.
fn tables_of_gateway(command: &Command) -> String {
    let mut text = String::new();
    for (flag, table, line) in PAIR_TABLES {
        let mut arguments = command.get_arguments();
        let argument = arguments.find(|argument| argument.get_long() == Some(flag));
        let comment = argument.map(help).unwrap_or_default();
        let _ = write!(text, "\n{}#[{table}]\n#{line}\n", wrapped(&comment));
    }
    let store = "Settings of the index service in this process, if with-store is true: the lines \
                 that `annulus settings store` prints";
    let _ = write!(
        text,
        "\n{}#[store]\n#uri = \"127.0.0.1:6080\"\n",
        wrapped(store)
    );
    text
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::cli::CommandLine;
    use crate::gateway_settings::GatewaySettings;
    use crate::settings::Settings;

    /// The settings of a file whose marks of comments are taken away, without those that have only
    /// the form of a value.
    fn uncommented(text: &str) -> String {
        let lines = text.lines().filter_map(|line| line.strip_prefix('#'));
        let lines = lines.filter(|line| !line.starts_with(' ') && !line.contains("\"<"));
        lines.map(|line| format!("{line}\n")).collect()
    }

    #[test]
    fn a_template_changes_nothing_until_a_mark_is_taken_away() {
        let text = template(TemplateServer::Serve, &CommandLine::command()).unwrap();
        let file: Settings = toml::from_str(&text).unwrap();
        let default = Settings::default();
        assert_eq!(format!("{file:?}"), format!("{default:?}"));
        let set = uncommented(&text);
        let file: Settings = toml::from_str(&set).unwrap_or_else(|error| panic!("{error}\n{set}"));
        assert_eq!(file.cql_port, Some(9042));
        assert_eq!(file.cache_mib, Some(256));
        assert_eq!(file.login, Some(false));
        assert_eq!(file.datacenter.as_deref(), Some("datacenter1"));
        assert!(set.contains("\ntables_warn_threshold = "), "{set}");
        assert!(text.contains("#memory-limit = \"<BYTES>\"\n"), "{text}");
    }

    #[test]
    fn a_template_of_a_gateway_has_its_tables_after_its_settings() {
        let text = template(TemplateServer::Gateway, &CommandLine::command()).unwrap();
        let read = |text: &str| GatewaySettings::of_file(toml::from_str(text).unwrap()).unwrap();
        let (file, default) = (read(&text), GatewaySettings::default());
        assert_eq!(format!("{file:?}"), format!("{default:?}"));
        let file = read(&uncommented(&text));
        assert_eq!(file.cql_port, Some(9043));
        assert_eq!(file.cassandra.as_deref(), Some("127.0.0.1:9042"));
        assert_eq!(file.gateways.map(|pairs| pairs.len()), Some(1));
        let zones = file.vector_store.vector_store_zones;
        assert_eq!(zones.map(|zones| zones.len()), Some(1));
        assert!(file.store.is_some_and(|store| store.contains_key("uri")));
        let list = "\n#vector-store-primary-uri = [\"<URI>\"]\n";
        assert!(text.contains(list), "{text}");
    }

    #[test]
    fn a_template_has_every_setting_once() {
        let command = CommandLine::command();
        for (server, name) in [
            (TemplateServer::Serve, "serve"),
            (TemplateServer::Store, "store"),
            (TemplateServer::Gateway, "gateway"),
        ] {
            let text = template(server, &command).unwrap();
            let flags = command.find_subcommand(name).unwrap().get_arguments();
            let flags = flags.filter(|flag| flag.get_env().is_some());
            let flags: Vec<&str> = flags.filter_map(|flag| flag.get_long()).collect();
            for flag in flags.iter().filter(|flag| **flag != "config") {
                let mut tables = PAIR_TABLES.iter();
                let line = match tables.find(|(of_flag, ..)| of_flag == flag) {
                    Some((_, table, _)) => format!("\n#[{table}]\n"),
                    None => format!("\n#{flag} = "),
                };
                assert_eq!(text.matches(&line).count(), 1, "{flag}");
            }
            assert!(text.lines().all(|line| line.len() <= COLUMNS + 2), "{text}");
        }
    }
}
