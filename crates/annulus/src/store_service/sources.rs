//! The sources of settings: flags, the environment, `.env`, a TOML file.
//!
//! A flag wins over the environment, the environment over `.env`, and `.env` over the file. The
//! lines of `.env` have the forms of flags. A gateway has no flags for the index service in its
//! process, but a table in its own file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Arg, Args, Command, FromArgMatches};
use web_console::SettingLine;

use super::host::ServiceHost;
use super::settings::StoreSettings;
use crate::exit::ProcessFailure;
use crate::setting_lines::{self, SettingTexts};

/// The name of a file in the working directory, which is read if it exists.
const DOT_ENV: &str = ".env";

/// Variables of ScyllaDB's own service that have no meaning here: there is one engine of each
/// class, the state of an index is always current, and there are no simulators.
const WITHOUT_EFFECT: [&str; 6] = [
    "VECTOR_STORE_OPENSEARCH_URI",
    "VECTOR_STORE_INDEX_STATUS_UPDATE_INTERVAL",
    "VECTOR_STORE_USEARCH_SIMULATOR",
    "VECTOR_STORE_USE_DISKANN",
    "VECTOR_STORE_DISKANN_ALPHA",
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
pub fn read(host: &ServiceHost) -> Result<StoreSettings, ProcessFailure> {
    let mut dot_env = dot_env(Path::new(DOT_ENV))?;
    dot_env.retain(|name, _| !is_in_environment(name));
    layered(host, given(host)?, &dot_env)
}

/// The settings as the console shows them.
pub fn shown(host: &ServiceHost) -> Result<Vec<SettingLine>, ProcessFailure> {
    let mut dot_env = dot_env(Path::new(DOT_ENV))?;
    dot_env.retain(|name, _| !is_in_environment(name));
    shown_of(host, &dot_env)
}

fn shown_of(
    host: &ServiceHost,
    dot_env: &BTreeMap<String, String>,
) -> Result<Vec<SettingLine>, ProcessFailure> {
    let known = known(host);
    let matches = known.clone().try_get_matches_from(flags(host));
    let matches = matches.map_err(|error| configuration("settings", &error))?;
    let typed = setting_lines::typed(&known, &matches);
    let variables = known.get_arguments().filter_map(|argument| {
        let (long, name) = (argument.get_long()?, argument.get_env()?);
        let value = dot_env.get(&*name.to_string_lossy())?;
        Some((long.to_owned(), value.clone()))
    });
    let in_dot_env: SettingTexts = variables.collect();
    let file = match host {
        ServiceHost::Alone(_) => {
            let path = typed.get("config").or(in_dot_env.get("config"));
            path.map(PathBuf::from)
        }
        ServiceHost::Gateway(gateway) => gateway.file.clone(),
    };
    let in_file = match file {
        Some(path) => setting_lines::in_file(&table_in(host, &path)?.1),
        None => SettingTexts::new(),
    };
    let sources = [
        (setting_lines::TYPED, typed),
        (setting_lines::DOT_ENV, in_dot_env),
        (setting_lines::FILE, in_file),
    ];
    Ok(setting_lines::lines(&known, &sources))
}

/// The variables that are set and have no effect.
pub fn without_effect(host: &ServiceHost) -> Vec<&'static str> {
    let dot_env = dot_env(Path::new(DOT_ENV)).unwrap_or_default();
    without_effect_in(host, &is_in_environment, &dot_env)
}

fn is_in_environment(name: &str) -> bool {
    std::env::var_os(name).is_some()
}

fn without_effect_in(
    host: &ServiceHost,
    in_environment: &dyn Fn(&str) -> bool,
    dot_env: &BTreeMap<String, String>,
) -> Vec<&'static str> {
    let of_the_process = OF_THE_PROCESS
        .iter()
        .filter(|_| matches!(host, ServiceHost::Gateway(_)))
        .map(|(_, name, is_gateways)| (*name, !is_gateways));
    let names = WITHOUT_EFFECT.into_iter().map(|name| (name, true));
    names
        .chain(of_the_process)
        .filter(|(name, in_vain)| dot_env.contains_key(*name) || (*in_vain && in_environment(name)))
        .map(|(name, _)| name)
        .collect()
}

/// All settings, of which flags and the environment give the first.
fn layered(
    host: &ServiceHost,
    given: StoreSettings,
    dot_env: &BTreeMap<String, String>,
) -> Result<StoreSettings, ProcessFailure> {
    let settings = given.or(of_dot_env(host, dot_env)?);
    let file = match host {
        ServiceHost::Alone(_) => settings.config.clone(),
        ServiceHost::Gateway(gateway) => gateway.file.clone(),
    };
    match file {
        Some(file) => Ok(settings.or(of_file(host, &file)?)),
        None => Ok(settings),
    }
}

/// The settings that flags and the environment give.
fn given(host: &ServiceHost) -> Result<StoreSettings, ProcessFailure> {
    parse(known(host), flags(host), "settings")
}

/// The flags for the index service.
fn flags(host: &ServiceHost) -> &[OsString] {
    match host {
        ServiceHost::Alone(flags) => flags,
        ServiceHost::Gateway(_) => &[],
    }
}

/// The settings that the variables of a `.env` file give.
fn of_dot_env(
    host: &ServiceHost,
    dot_env: &BTreeMap<String, String>,
) -> Result<StoreSettings, ProcessFailure> {
    let known = known(host);
    let flags = known.get_arguments().filter_map(|argument| {
        let (long, name) = (argument.get_long()?, argument.get_env()?);
        let value = dot_env.get(&*name.to_string_lossy())?;
        Some(OsString::from(format!("--{long}={value}")))
    });
    let flags: Vec<OsString> = flags.collect();
    parse(without_environment(known), &flags, DOT_ENV)
}

/// The settings in a TOML file.
fn of_file(host: &ServiceHost, path: &Path) -> Result<StoreSettings, ProcessFailure> {
    let (origin, table) = table_in(host, path)?;
    let known = known(host);
    for long in table.keys() {
        let mut arguments = known.get_arguments();
        let argument = arguments.find(|argument| argument.get_long() == Some(long.as_str()));
        let Some(argument) = argument else {
            let what = format!("there is no setting `{long}`");
            return Err(wrong(&origin, &what));
        };
        if matches!(host, ServiceHost::Gateway(_)) && is_of_the_process(argument) {
            return Err(ProcessFailure::Configuration(format!(
                "{origin}: `{long}` concerns the whole process, so it has no effect here: leave it out"
            )));
        }
    }
    table.try_into().map_err(|error: toml::de::Error| {
        let what = error.to_string().trim().replace('\n', " ");
        wrong(&origin, &what)
    })
}

/// The settings that exist, in the form of a parser.
fn known(host: &ServiceHost) -> Command {
    let command = Command::new("settings").no_binary_name(true);
    let known = StoreSettings::augment_args(command).args_override_self(true);
    match host {
        ServiceHost::Alone(_) => known,
        ServiceHost::Gateway(_) => known.mut_args(|argument| match is_of_the_process(&argument) {
            true => argument.env(None::<&str>),
            false => argument,
        }),
    }
}

fn is_of_the_process(argument: &Arg) -> bool {
    let is = |(long, _, _): &(&str, _, _)| argument.get_long() == Some(long);
    OF_THE_PROCESS.iter().any(is)
}

fn without_environment(known: Command) -> Command {
    known.mut_args(|argument| argument.env(None::<&str>))
}

/// Parses flags, of which a later one wins. Errors name the origin of the flags.
fn parse(
    known: Command,
    typed: &[OsString],
    origin: &str,
) -> Result<StoreSettings, ProcessFailure> {
    let matches = known.try_get_matches_from(typed);
    matches
        .and_then(|matches| StoreSettings::from_arg_matches(&matches))
        .map_err(|error| configuration(origin, &error))
}

fn configuration(origin: &str, error: &clap::Error) -> ProcessFailure {
    let text = error.to_string();
    let text = text.trim_start_matches("error: ");
    // The rest of the text is about usage.
    let first = text.split("\n\n").next().unwrap_or(text);
    ProcessFailure::Configuration(format!("{origin}: {first}"))
}

/// Reads the variables of a `.env` file; none if there is no such file.
fn dot_env(path: &Path) -> Result<BTreeMap<String, String>, ProcessFailure> {
    let wrong = |error: dotenvy::Error| {
        let why = match error {
            // The error contains the whole line, which may have a password.
            dotenvy::Error::LineParse(..) => {
                "a line can't be parsed: write NAME=VALUE, and a value with blanks in quotes"
                    .to_owned()
            }
            error => error.to_string(),
        };
        ProcessFailure::Configuration(format!("{}: {why}", path.display()))
    };
    match dotenvy::from_path_iter(path) {
        Ok(variables) => variables.collect::<Result<_, _>>().map_err(wrong),
        Err(error) if error.not_found() => Ok(BTreeMap::new()),
        Err(error) => Err(wrong(error)),
    }
}

/// The settings in a TOML file, and the words that name their place.
fn table_in(host: &ServiceHost, path: &Path) -> Result<(String, toml::Table), ProcessFailure> {
    let mut origin = format!("configuration file {}", path.display());
    let mut table = toml_file(path, &origin)?;
    if let ServiceHost::Gateway(_) = host {
        table = table_of(table, &origin)?;
        origin.push_str(", [store]");
    }
    Ok((origin, table))
}

fn toml_file(path: &Path, origin: &str) -> Result<toml::Table, ProcessFailure> {
    let text = std::fs::read_to_string(path).map_err(|error| wrong(origin, &error))?;
    toml::from_str(&text).map_err(|error| wrong(origin, &error))
}

/// The table of the index service in a gateway's file; an empty table if there is none.
fn table_of(mut file: toml::Table, origin: &str) -> Result<toml::Table, ProcessFailure> {
    match file.remove("store") {
        None => Ok(toml::Table::new()),
        Some(toml::Value::Table(table)) => Ok(table),
        Some(_) => Err(wrong(origin, &"`store` is no table")),
    }
}

fn wrong(origin: &str, what: &dyn ToString) -> ProcessFailure {
    ProcessFailure::Configuration(format!("{origin}: {}", what.to_string()))
}

#[cfg(test)]
mod tests;
