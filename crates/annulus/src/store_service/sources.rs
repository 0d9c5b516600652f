//! Where settings come from: the command line, the environment, `.env`, a TOML file.
//!
//! All of them are put before the one parser of the command line, so that a setting means the same
//! wherever it stands. A flag wins over the environment, that over `.env`, that over the file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

use clap::{Arg, Args, Command, Parser};

use super::settings::StoreSettings;
use crate::cli;
use crate::exit::Failure;

/// Read from the working directory, if it is there.
const DOT_ENV: &str = ".env";

/// Variables of the original that have no meaning here: there is one engine and no text index, the
/// state of an index is always current, and there are no simulators.
const WITHOUT_EFFECT: [&str; 7] = [
    "VECTOR_STORE_OPENSEARCH_URI",
    "VECTOR_STORE_INDEX_STATUS_UPDATE_INTERVAL",
    "VECTOR_STORE_USEARCH_SIMULATOR",
    "VECTOR_STORE_USE_DISKANN",
    "VECTOR_STORE_DISKANN_ALPHA",
    "VECTOR_STORE_FULLTEXT_INDEXES",
    "VECTOR_STORE_ALTER_INDEX_SIMULATOR",
];

/// What is set by the arguments of this process (the program and the subcommand first) and by all
/// other sources.
pub fn read(arguments: Vec<OsString>) -> Result<StoreSettings, Failure> {
    layered(
        arguments,
        &|name| std::env::var_os(name).is_some(),
        &dot_env(Path::new(DOT_ENV))?,
    )
}

/// Which variables are set that have no effect.
pub fn without_effect() -> Vec<&'static str> {
    let dot_env = dot_env(Path::new(DOT_ENV)).unwrap_or_default();
    let is_set = |name: &str| std::env::var_os(name).is_some() || dot_env.contains_key(name);
    let names = WITHOUT_EFFECT.into_iter();
    names.filter(|name| is_set(name)).collect()
}

fn layered(
    mut arguments: Vec<OsString>,
    in_environment: &dyn Fn(&str) -> bool,
    dot_env: &BTreeMap<String, String>,
) -> Result<StoreSettings, Failure> {
    let known = StoreSettings::augment_args(Command::new("settings"));
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
    check(&from_dot_env, DOT_ENV)?;
    insert(&mut arguments, &from_dot_env);
    let settings = parse(arguments.clone())?;
    let Some(path) = &settings.config else {
        return Ok(settings);
    };
    let origin = format!("configuration file {}", path.display());
    let mut from_file = Vec::new();
    for (long, value) in toml_file(path, &origin)? {
        let argument = known
            .get_arguments()
            .find(|argument| argument.get_long() == Some(&long))
            .ok_or_else(|| {
                Failure::Configuration(format!("{origin}: there is no setting `{long}`"))
            })?;
        if !in_environment(argument) {
            from_file.push((long, value));
        }
    }
    check(&from_file, &origin)?;
    insert(&mut arguments, &from_file);
    parse(arguments)
}

/// Fails, naming where the settings come from, if they alone could not be parsed.
fn check(settings: &[(String, String)], origin: &str) -> Result<(), Failure> {
    StoreSettings::augment_args(Command::new("settings").args_override_self(true))
        .mut_args(|argument| argument.env(None::<&str>))
        .no_binary_name(true)
        .try_get_matches_from(flags(settings))
        .map(drop)
        .map_err(|error| configuration(origin, &error))
}

/// Puts settings behind the subcommand, so that whatever stands after them wins.
fn insert(arguments: &mut Vec<OsString>, settings: &[(String, String)]) {
    let behind = arguments.len().min(2);
    arguments.splice(behind..behind, flags(settings));
}

fn flags(settings: &[(String, String)]) -> impl Iterator<Item = OsString> {
    settings
        .iter()
        .map(|(long, value)| OsString::from(format!("--{long}={value}")))
}

fn parse(arguments: Vec<OsString>) -> Result<StoreSettings, Failure> {
    let parsed = cli::CommandLine::try_parse_from(arguments)
        .map_err(|error| configuration("settings", &error))?;
    match parsed.command {
        cli::Command::Store(settings) => Ok(*settings),
        _ => Err(Failure::Configuration(
            "these are not the arguments of `annulus store`".to_owned(),
        )),
    }
}

fn configuration(origin: &str, error: &clap::Error) -> Failure {
    let text = error.to_string();
    let text = text.trim_start_matches("error: ");
    // The rest is about usage.
    let first = text.split("\n\n").next().unwrap_or(text);
    Failure::Configuration(format!("{origin}: {first}"))
}

/// The variables of a `.env` file; none if there is no such file.
fn dot_env(path: &Path) -> Result<BTreeMap<String, String>, Failure> {
    let wrong = |error: dotenvy::Error| {
        let why = match error {
            // The error holds the whole line, which may be a password.
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

/// Settings of a TOML file, as they would be typed.
fn toml_file(path: &Path, origin: &str) -> Result<Vec<(String, String)>, Failure> {
    let wrong =
        |error: &dyn ToString| Failure::Configuration(format!("{origin}: {}", error.to_string()));
    let text = std::fs::read_to_string(path).map_err(|error| wrong(&error))?;
    let table: toml::Table = toml::from_str(&text).map_err(|error| wrong(&error))?;
    table
        .into_iter()
        .map(|(long, value)| match typed(&value) {
            Some(value) => Ok((long, value)),
            None => Err(wrong(&format!("`{long}` is not a string, number or list"))),
        })
        .collect()
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
