//! The settings of a server as the console shows them: each by its long name, with the value that
//! counts and the place that it comes from.
//!
//! `annulus serve` has them from the table of its settings ([`crate::shown_settings`]). Of the
//! other servers a line has the text that a source gives, or the default that `--help` names. No
//! setting is a secret itself: secrets are in files that settings name.

use std::collections::BTreeMap;

use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command};
use node::system::ProcessSetting;
use web_console::SettingLine;

use crate::embedder_settings::{URL, without_query};

/// The sources of settings, as lines name them.
pub const TYPED: &str = "command line or environment";
pub const DOT_ENV: &str = ".env";
pub const FILE: &str = "file";

/// Tables of a file for flags that may be given several times: the table, and the flag.
const TABLES: [(&str, &str); 2] = [
    ("gateways", "gateway"),
    ("vector-store-zones", "vector-store-zone"),
];

/// Texts of settings by their long names.
pub type SettingTexts = BTreeMap<String, String>;

/// The lines of settings that are known with their values.
pub fn of_process(settings: &[ProcessSetting]) -> Vec<SettingLine> {
    let lines = settings.iter().map(|setting| SettingLine {
        name: setting.name.clone(),
        value: setting.value.clone(),
        source: setting.source,
    });
    lines.collect()
}

/// The lines of all settings of a command, by the texts of their sources. An earlier source wins
/// over a later one.
pub fn lines(known: &Command, sources: &[(&'static str, SettingTexts)]) -> Vec<SettingLine> {
    let lines = shown(known).map(|(long, argument)| {
        let mut given = sources.iter();
        let given = given.find_map(|(source, texts)| Some((*source, texts.get(long)?.clone())));
        let (source, value) = given.unwrap_or_else(|| ("default", default(argument)));
        SettingLine {
            name: long.to_owned(),
            value: match long {
                URL => without_query(&value),
                _ => value,
            },
            source,
        }
    });
    lines.collect()
}

/// The texts that flags and the environment give.
pub fn typed(known: &Command, matches: &ArgMatches) -> SettingTexts {
    let texts = shown(known).filter_map(|(long, argument)| {
        let id = argument.get_id().as_str();
        let source = matches.value_source(id)?;
        let words = matches.get_raw(id)?;
        let words: Vec<String> = words
            .map(|word| word.to_string_lossy().into_owned())
            .collect();
        (source != ValueSource::DefaultValue).then(|| (long.to_owned(), words.join(",")))
    });
    texts.collect()
}

/// The texts of a file.
pub fn in_file(file: &toml::Table) -> SettingTexts {
    let texts = file.iter().map(|(name, value)| {
        let mut tables = TABLES.iter();
        let of_table = tables.find(|(table, _)| *table == name.as_str());
        let name = of_table.map_or(name.as_str(), |(_, flag)| *flag);
        (name.to_owned(), text(value))
    });
    texts.collect()
}

/// A value of a file as it would be typed.
fn text(value: &toml::Value) -> String {
    match value {
        toml::Value::String(text) => text.clone(),
        toml::Value::Array(values) => {
            let values: Vec<String> = values.iter().map(text).collect();
            values.join(",")
        }
        toml::Value::Table(pairs) => {
            let pairs = pairs.iter();
            let pairs: Vec<String> = pairs
                .map(|(name, value)| format!("{name}={}", text(value)))
                .collect();
            pairs.join(",")
        }
        other => other.to_string(),
    }
}

/// The settings of a command: flags that are variables, too.
fn shown(known: &Command) -> impl Iterator<Item = (&str, &Arg)> {
    known.get_arguments().filter_map(|argument| {
        let is_shown = !argument.is_hide_set() && argument.get_env().is_some();
        argument
            .get_long()
            .filter(|_| is_shown)
            .map(|long| (long, argument))
    })
}

/// The default of a setting, as its help names it.
fn default(argument: &Arg) -> String {
    let help = argument.get_long_help().or(argument.get_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    match default_in(&help) {
        "" => "none".to_owned(),
        default => default.to_owned(),
    }
}

/// The default that the help of a setting names; empty if it names none.
pub fn default_in(help: &str) -> &str {
    help.split_once("[default: ").map_or("", |(_, rest)| {
        rest.split_once(']').map_or(rest, |(default, _)| default)
    })
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::*;
    use crate::gateway_settings::GatewaySettings;

    fn value<'a>(lines: &'a [SettingLine], name: &str) -> (&'a str, &'static str) {
        let line = lines.iter().find(|line| line.name == name).unwrap();
        (line.value.as_str(), line.source)
    }

    #[test]
    fn a_line_has_the_text_of_the_first_source() {
        let known = GatewaySettings::augment_args(Command::new("gateway").no_binary_name(true));
        let flags = [
            "--cql-port=9143",
            "--pass-through",
            "--vector-store-primary-uri=http://a:1,http://b:2",
        ];
        let matches = known.clone().try_get_matches_from(flags).unwrap();
        let file: toml::Table = toml::from_str(
            "cql-port = 1\ncassandra = \"10.0.0.1:9042\"\n\
             [gateways]\n\"10.0.0.1:9042\" = \"10.0.1.1:9043\"\n[store]\nuri = \"x\"\n",
        )
        .unwrap();
        let lines = lines(
            &known,
            &[(TYPED, typed(&known, &matches)), (FILE, in_file(&file))],
        );
        for (name, text, source) in [
            ("cql-port", "9143", TYPED),
            ("pass-through", "true", TYPED),
            ("vector-store-primary-uri", "http://a:1,http://b:2", TYPED),
            ("cassandra", "10.0.0.1:9042", FILE),
            ("gateway", "10.0.0.1:9042=10.0.1.1:9043", FILE),
            ("listen", "127.0.0.1", "default"),
            ("cassandra-password-file", "none", "default"),
        ] {
            assert_eq!(value(&lines, name), (text, source), "{name}");
        }
        let hidden = ["test-clock-offset-file", "store"];
        assert!(
            lines
                .iter()
                .all(|line| !hidden.contains(&line.name.as_str()))
        );
    }
}
