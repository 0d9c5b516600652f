//! The sources of settings: flags, the environment, `.env`, a TOML file.
//!
//! All sources go through one parser of flags, so that a setting means the same in each of them. A
//! flag wins over the environment, the environment over `.env`, and `.env` over the file. A gateway
//! has no flags for the index service in its process, but a table in its own file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, Args, Command, FromArgMatches};

use super::host::Host;
use super::settings::StoreSettings;
use crate::exit::Failure;

/// The name of a file in the working directory, which is read if it exists.
const DOT_ENV: &str = ".env";

/// Variables of ScyllaDB's own service that have no meaning here: there is one engine and no text
/// index, the state of an index is always current, and there are no simulators.
const WITHOUT_EFFECT: [&str; 7] = [
    "VECTOR_STORE_OPENSEARCH_URI",
    "VECTOR_STORE_INDEX_STATUS_UPDATE_INTERVAL",
    "VECTOR_STORE_USEARCH_SIMULATOR",
    "VECTOR_STORE_USE_DISKANN",
    "VECTOR_STORE_DISKANN_ALPHA",
    "VECTOR_STORE_FULLTEXT_INDEXES",
    "VECTOR_STORE_ALTER_INDEX_SIMULATOR",
];

/// Settings of the whole process, which have no effect on an index service in a gateway. Each has
/// its long name, its variable, and whether the gateway has a setting of its own by that variable.
const OF_THE_PROCESS: [(&str, &str, bool); 5] = [
    ("config", "ANNULUS_CONFIG", true),
    ("async-threads", "ANNULUS_ASYNC_THREADS", true),
    ("disable-colors", "VECTOR_STORE_DISABLE_COLORS", false),
    ("log", "ANNULUS_LOG", true),
    ("log-format", "ANNULUS_LOG_FORMAT", true),
];

/// Reads the settings from all sources of that host.
pub fn read(host: &Host) -> Result<StoreSettings, Failure> {
    let dot_env = dot_env(Path::new(DOT_ENV))?;
    layered(host, &is_in_environment, &dot_env)
}

/// The variables that are set and have no effect.
pub fn without_effect(host: &Host) -> Vec<&'static str> {
    let dot_env = dot_env(Path::new(DOT_ENV)).unwrap_or_default();
    without_effect_in(host, &is_in_environment, &dot_env)
}

fn is_in_environment(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

fn without_effect_in(
    host: &Host,
    in_environment: &dyn Fn(&str) -> bool,
    dot_env: &BTreeMap<String, String>,
) -> Vec<&'static str> {
    let of_the_process = OF_THE_PROCESS
        .iter()
        .filter(|_| matches!(host, Host::Gateway(_)))
        .map(|(_, name, is_gateways)| (*name, !is_gateways));
    let names = WITHOUT_EFFECT.into_iter().map(|name| (name, true));
    names
        .chain(of_the_process)
        .filter(|(name, in_vain)| dot_env.contains_key(*name) || (*in_vain && in_environment(name)))
        .map(|(name, _)| name)
        .collect()
}

fn layered(
    host: &Host,
    in_environment: &dyn Fn(&str) -> bool,
    dot_env: &BTreeMap<String, String>,
) -> Result<StoreSettings, Failure> {
    let known = known(host);
    let in_environment = |argument: &Arg| {
        let name = argument.get_env();
        name.is_some_and(|name| in_environment(&name.to_string_lossy()))
    };
    let mut from_dot_env = Vec::new();
    for argument in known.get_arguments() {
        if let (Some(long), Some(name)) = (argument.get_long(), argument.get_env())
            && let Some(value) = dot_env.get(&*name.to_string_lossy())
            && !in_environment(argument)
        {
            from_dot_env.push((long.to_owned(), value.clone()));
        }
    }
    check(&known, &from_dot_env, DOT_ENV)?;
    let mut typed: Vec<OsString> = flags(&from_dot_env).collect();
    if let Host::Alone(flags) = host {
        typed.extend_from_slice(flags);
    }
    let settings = parse(&known, &typed)?;
    let file = match host {
        Host::Alone(_) => &settings.config,
        Host::Gateway(gateway) => &gateway.file,
    };
    let Some(path) = file else {
        return Ok(settings);
    };
    let mut origin = format!("configuration file {}", path.display());
    let mut table = toml_file(path, &origin)?;
    if let Host::Gateway(_) = host {
        table = table_of(table, &origin)?;
        origin.push_str(", [store]");
    }
    let mut from_file = Vec::new();
    for (long, value) in as_typed(table, &origin)? {
        let argument = known
            .get_arguments()
            .find(|argument| argument.get_long() == Some(&long))
            .ok_or_else(|| {
                Failure::Configuration(format!("{origin}: there is no setting `{long}`"))
            })?;
        if matches!(host, Host::Gateway(_)) && is_of_the_process(argument) {
            return Err(Failure::Configuration(format!(
                "{origin}: `{long}` concerns the whole process, so it has no effect here: leave it out"
            )));
        }
        if !in_environment(argument) {
            from_file.push((long, value));
        }
    }
    check(&known, &from_file, &origin)?;
    let typed: Vec<OsString> = flags(&from_file).chain(typed).collect();
    parse(&known, &typed)
}

/// The settings that exist, in the form of a parser.
fn known(host: &Host) -> Command {
    let command = Command::new("settings").no_binary_name(true);
    let known = StoreSettings::augment_args(command).args_override_self(true);
    match host {
        Host::Alone(_) => known,
        Host::Gateway(_) => known.mut_args(|argument| match is_of_the_process(&argument) {
            true => argument.env(None::<&str>),
            false => argument,
        }),
    }
}

fn is_of_the_process(argument: &Arg) -> bool {
    let is = |(long, _, _): &(&str, _, _)| argument.get_long() == Some(long);
    OF_THE_PROCESS.iter().any(is)
}

/// Fails if these settings by themselves can't be parsed. The error names their source.
fn check(known: &Command, settings: &[(String, String)], origin: &str) -> Result<(), Failure> {
    let command = known
        .clone()
        .mut_args(|argument| argument.env(None::<&str>));
    command
        .try_get_matches_from(flags(settings))
        .map(drop)
        .map_err(|error| configuration(origin, &error))
}

fn flags(settings: &[(String, String)]) -> impl Iterator<Item = OsString> {
    settings
        .iter()
        .map(|(long, value)| OsString::from(format!("--{long}={value}")))
}

/// Parses flags. A later flag wins, and a setting without a flag is taken from the environment.
fn parse(known: &Command, typed: &[OsString]) -> Result<StoreSettings, Failure> {
    let matches = known.clone().try_get_matches_from(typed);
    matches
        .and_then(|matches| StoreSettings::from_arg_matches(&matches))
        .map_err(|error| configuration("settings", &error))
}

fn configuration(origin: &str, error: &clap::Error) -> Failure {
    let text = error.to_string();
    let text = text.trim_start_matches("error: ");
    // The rest of the text is about usage.
    let first = text.split("\n\n").next().unwrap_or(text);
    Failure::Configuration(format!("{origin}: {first}"))
}

/// Reads the variables of a `.env` file; none if there is no such file.
fn dot_env(path: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let wrong = |error: dotenvy::Error| {
        let why = match error {
            // The error contains the whole line, which may have a password.
            dotenvy::Error::LineParse(..) => {
                "a line can't be parsed: write NAME=VALUE, and a value with blanks in quotes"
                    .to_owned()
            }
            error => error.to_string(),
        };
        Failure::Configuration(format!("{}: {why}", path.display()))
    };
    match dotenvy::from_path_iter(path) {
        Ok(variables) => variables.collect::<Result<_, _>>().map_err(wrong),
        Err(error) if error.not_found() => Ok(BTreeMap::new()),
        Err(error) => Err(wrong(error)),
    }
}

fn toml_file(path: &Path, origin: &str) -> Result<toml::Table, Failure> {
    let text = std::fs::read_to_string(path).map_err(|error| wrong(origin, &error))?;
    toml::from_str(&text).map_err(|error| wrong(origin, &error))
}

/// The table of the index service in a gateway's file; an empty table if there is none.
fn table_of(mut file: toml::Table, origin: &str) -> Result<toml::Table, Failure> {
    match file.remove("store") {
        None => Ok(toml::Table::new()),
        Some(toml::Value::Table(table)) => Ok(table),
        Some(_) => Err(wrong(origin, &"`store` is no table")),
    }
}

/// Writes the settings of a TOML file in the form of flags.
fn as_typed(table: toml::Table, origin: &str) -> Result<Vec<(String, String)>, Failure> {
    let settings = table.into_iter();
    let settings = settings.map(|(long, value)| match typed(&value) {
        Some(value) => Ok((long, value)),
        None => {
            let what = format!("`{long}` is not a string, number or list");
            Err(wrong(origin, &what))
        }
    });
    settings.collect()
}

fn wrong(origin: &str, what: &dyn ToString) -> Failure {
    Failure::Configuration(format!("{origin}: {}", what.to_string()))
}

fn typed(value: &toml::Value) -> Option<String> {
    Some(match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Integer(number) => number.to_string(),
        toml::Value::Float(number) => number.to_string(),
        toml::Value::Boolean(yes) => yes.to_string(),
        toml::Value::Array(values) => {
            let values: Option<Vec<String>> = values.iter().map(typed).collect();
            values?.join(",")
        }
        toml::Value::Datetime(_) | toml::Value::Table(_) => return None,
    })
}

#[cfg(test)]
mod tests;
