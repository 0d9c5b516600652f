//! The page docs/settings.md: the tables of settings of all servers, as `--help` knows them.
//!
//! `make docs/settings.md` writes it. The tests compare it, and the defaults that docs/limits.md
//! and docs/limits-of-servers.md name, with the tables, and the defaults of the tables with the
//! values that count.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::{Arg, Args, Command, CommandFactory, FromArgMatches};

use crate::cli::CommandLine;
use crate::gateway_settings::GatewaySettings;
use crate::settings::Settings;
use crate::settings_table::settings_table;
use crate::size::ByteSize;
use crate::span::HumanDuration;
use crate::store_service::StoreSettings;

/// The variable that is set where the page is to be written.
const UPDATE: &str = "ANNULUS_UPDATE_SETTINGS_PAGE";

const INTRODUCTION: &str = "\
# Settings

All settings of the three servers, with their defaults. `make docs/settings.md` makes this page of the program's own
tables. A setting is a flag, an environment variable, and a line of the TOML file that `--config` names, under the name
of the flag without its dashes:

```toml
cql-port = 9142
snapshot-interval = \"10m\"
login = true
```

Durations are written `500ms`, `10s`, `1m 30s`, `7d`; memory as bytes or `4GiB`. A flag that takes `true` or
`false` is `true` without a value. [limits.md](limits.md#values-of-settings) has the ranges of values.
";

/// The servers, each with the text before its table.
const COMMANDS: [(&str, &str); 3] = [
    (
        "serve",
        "\
A flag wins over the environment, and the environment over the file. In the file there may also be a table
`[guardrails]` ([guardrails.md](guardrails.md)). `SELECT * FROM system_views.settings` shows the values that count.
",
    ),
    (
        "store",
        "\
A flag wins over the environment, the environment over `.env` in the working directory, which has the names of the
environment, and `.env` over the file ([store.md](store.md#settings)). In the process of a gateway
([gateway.md](gateway.md#with-the-index-service)) these settings are lines of the table `[store]` in the gateway's file.
",
    ),
    (
        "gateway",
        "\
A flag wins over the environment, and the environment over the file ([gateway.md](gateway.md)).
",
    ),
];

/// A setting as the page shows it.
struct SettingRow {
    flag: String,
    variable: String,
    /// The words that it takes, or a name for the form of its value.
    value: String,
    default: String,
    meaning: String,
}

impl SettingRow {
    fn of(argument: &Arg) -> SettingRow {
        let help = argument.get_long_help().or(argument.get_help());
        let help = help.map(ToString::to_string).unwrap_or_default();
        let (before, rest) = help
            .split_once(" [default: ")
            .unwrap_or((help.as_str(), "]"));
        let (default, after) = rest.split_once(']').expect("the end of the default");
        let meaning = format!("{before}{after}");
        let sentences = meaning.split("\n\n").map(|text| text.trim_end_matches('.'));
        let variable = argument.get_env().expect("a variable");
        SettingRow {
            flag: argument.get_long().expect("a flag").to_owned(),
            variable: variable.to_string_lossy().into_owned(),
            value: value(argument),
            default: default.to_owned(),
            meaning: sentences.collect::<Vec<_>>().join(". "),
        }
    }

    fn line(&self) -> String {
        let cells = [
            format!("`--{}`", self.flag),
            format!("`{}`", self.variable),
            self.value.clone(),
            self.default.clone(),
            self.meaning.replace('|', "\\|"),
        ];
        let cells = cells.map(|cell| match cell.as_str() {
            "" => " |".to_owned(),
            cell => format!(" {cell} |"),
        });
        format!("|{}\n", cells.concat())
    }

    /// The number that the default begins with, with the unit that the name of its value says.
    fn default_quantity(&self) -> Option<String> {
        let unit = match self.value.as_str() {
            "KIB" => "KiB",
            "MIB" => "MiB",
            "US" => "us",
            "MS" => "ms",
            "HOURS" => "hours",
            _ => "",
        };
        let is_number = self.default.starts_with(|c: char| c.is_ascii_digit());
        is_number.then(|| quantity(&self.default, unit)).flatten()
    }

    /// The default, if it can be written as a value of the setting.
    fn default_value(&self) -> Option<&str> {
        let is_word = !self.default.contains(' ');
        let is_value = is_word && !["", "none", "never"].contains(&self.default.as_str());
        is_value.then_some(self.default.as_str())
    }
}

/// The words that a setting takes, or a name for the form of its value.
fn value(argument: &Arg) -> String {
    let words = argument.get_possible_values();
    let words: Vec<String> = words
        .iter()
        .map(|word| format!("`{}`", word.get_name()))
        .collect();
    if !words.is_empty() {
        return words.join(", ");
    }
    let names = argument.get_value_names().unwrap_or_default();
    let names: Vec<String> = names.iter().map(ToString::to_string).collect();
    names.join(" ")
}

/// The settings of a command.
fn rows(command: &Command) -> Vec<SettingRow> {
    let shown = command.get_arguments().filter(|flag| !flag.is_hide_set());
    shown.map(SettingRow::of).collect()
}

/// The settings of the command with this name.
fn rows_of(name: &str) -> Vec<SettingRow> {
    let all = CommandLine::command();
    rows(all.find_subcommand(name).expect("a server"))
}

fn table(rows: &[SettingRow]) -> String {
    let head =
        "| flag | variable | value | default | what it sets |\n| --- | --- | --- | --- | --- |\n";
    let lines: String = rows.iter().map(SettingRow::line).collect();
    format!("{head}{lines}")
}

fn page() -> String {
    let sections = COMMANDS.map(|(name, text)| {
        let table = table(&rows_of(name));
        format!("\n## `annulus {name}`\n\n{text}\n{table}")
    });
    format!("{INTRODUCTION}{}", sections.concat())
}

fn path(page: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    root.join("docs").join(page)
}

/// The first number of a text, in one form for all ways to write it. Unless a unit is given, it is
/// the next word, if that is one.
fn quantity(text: &str, unit: &str) -> Option<String> {
    let mut words = text.split_whitespace();
    let number = words.find(|word| word.starts_with(|c: char| c.is_ascii_digit()))?;
    let number = number.trim_end_matches(',').replace(',', "");
    let unit = match unit {
        "" => words.next().unwrap_or_default().trim_end_matches(','),
        unit => unit,
    };
    let with_unit = format!("{number}{unit}");
    measured(&with_unit).or_else(|| measured(&number))
}

/// A duration, or a number of bytes or of other things.
fn measured(text: &str) -> Option<String> {
    let duration = text
        .parse::<HumanDuration>()
        .map(|span| format!("{:?}", span.0));
    let count = || text.parse::<ByteSize>().map(|size| size.0.to_string());
    duration.or_else(|_| count()).ok()
}

/// The settings that these flags give.
fn given<S: Args>(flags: &[String]) -> anyhow::Result<S> {
    let command = S::augment_args(Command::new("settings").no_binary_name(true));
    let matches = command.try_get_matches_from(flags)?;
    Ok(<S as FromArgMatches>::from_arg_matches(&matches)?)
}

/// All that counts with these flags of a command, as text.
fn resolved(command: &str, flags: &[String]) -> anyhow::Result<String> {
    Ok(match command {
        "serve" => format!("{:?}", given::<Settings>(flags)?.resolve()?),
        "store" => format!("{:?}", given::<StoreSettings>(flags)?.resolve()?),
        _ => without_given_tls(&format!(
            "{:?}",
            given::<GatewaySettings>(flags)?.resolve()?
        )),
    })
}

/// Leaves out the settings of TLS as they were given, which a gateway has in addition to those that
/// count.
fn without_given_tls(resolved: &str) -> String {
    let (before, given) = resolved.split_once("tls: GatewayTls {").unwrap();
    let (_, after) = given.split_once("}").unwrap();
    format!("{before}{after}")
}

#[test]
fn the_page_has_all_settings() {
    let (path, page) = (path("settings.md"), page());
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &page).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap();
    let lines = written.lines().zip(page.lines());
    for (written, made) in lines {
        assert_eq!(written, made, "make docs/settings.md");
    }
    assert!(written == page, "make docs/settings.md");
}

#[test]
fn the_pages_of_limits_name_the_defaults() {
    let pages = ["limits.md", "limits-of-servers.md"];
    let limits = pages.map(|page| fs::read_to_string(path(page)).unwrap());
    let names = COMMANDS.iter();
    let rows: Vec<(&str, SettingRow)> = names
        .flat_map(|(name, _)| rows_of(name).into_iter().map(move |row| (*name, row)))
        .collect();
    let mut without = BTreeSet::new();
    let lines = limits.iter().flat_map(|page| page.lines());
    let cells = lines.flat_map(|line| line.split('|'));
    for cell in cells {
        for (at, _) in cell.match_indices("(`--") {
            let default = quantity(cell[..at].rsplit(';').next().unwrap(), "");
            let brackets = cell[at + 1..].split(')').next().unwrap();
            let codes = brackets.split('`');
            for flag in codes.filter_map(|code| code.strip_prefix("--")) {
                let of_flag: Vec<_> = rows.iter().filter(|(_, row)| row.flag == flag).collect();
                assert!(!of_flag.is_empty(), "there is no --{flag}");
                for (command, row) in of_flag {
                    let in_table = row.default_quantity();
                    if in_table.is_none() {
                        without.insert(flag);
                        continue;
                    }
                    assert_eq!(default, in_table, "--{flag} of annulus {command}: {cell}");
                }
            }
        }
    }
    // Their defaults are no numbers.
    let others = [
        "memory-limit",
        "mtls-ca-cert-path",
        "search-threads",
        "threads",
    ];
    assert_eq!(without, BTreeSet::from(others));
}

#[test]
fn a_number_is_read_in_all_its_forms() {
    for (text, unit, other) in [
        ("seen within 1 s", "", "1000ms"),
        ("24 hours", "", "1d"),
        ("3000", "ms", "3s"),
        ("64, or a sixteenth", "MiB", "64 MiB, or a sixteenth"),
        ("10,000", "", "10000"),
    ] {
        let read = quantity(text, unit);
        assert!(read.is_some(), "{text}");
        assert_eq!(read, quantity(other, ""), "{text}");
    }
    assert_ne!(quantity("5 KiB", ""), quantity("5", "MiB"));
    assert_eq!(quantity("one a core", ""), None);
}

/// Settings whose default is refused or has no effect without another.
const COMPANIONS: [(&str, &str); 4] = [
    ("audit-categories", "--audit-log=audit.log"),
    (
        "embeddings-model",
        "--embeddings-url=http://127.0.0.1:8080/v1/embeddings",
    ),
    ("repair-intensity", "--repair-interval=7d"),
    ("sync-interval-ms", "--durability=buffered"),
];

#[test]
fn a_default_as_a_flag_changes_nothing() {
    let mut compared = 0;
    for (command, _) in COMMANDS {
        for row in rows_of(command) {
            let Some(default) = row.default_value() else {
                continue;
            };
            let companions = COMPANIONS.iter().filter(|(flag, _)| *flag == row.flag);
            let mut flags: Vec<String> = companions.map(|(_, other)| (*other).to_owned()).collect();
            let without = resolved(command, &flags).unwrap();
            flags.push(format!("--{}={default}", row.flag));
            let with =
                resolved(command, &flags).unwrap_or_else(|error| panic!("{flags:?}: {error}"));
            assert_eq!(with, without, "annulus {command} {flags:?}");
            compared += 1;
        }
    }
    assert!(compared > 40, "{compared} defaults");
}

settings_table! {
    /// A table to which a setting was added.
    pub struct AddedSettings => resolved: String {
        /// Colour of the ring [default: red]
        ///
        /// It fades.
        #[arg(long, env = "PATH", value_name = "NAME")]
        pub ring_colour: Option<String> => "text", resolved,
    }
}

#[test]
fn a_setting_in_the_table_is_everywhere() {
    let path = std::env::var("PATH").unwrap();
    let variable: AddedSettings = given(&[]).unwrap();
    assert_eq!(variable.ring_colour.as_ref(), Some(&path));
    let flag: AddedSettings = given(&["--ring-colour=blue".to_owned()]).unwrap();
    assert_eq!(flag.ring_colour.as_deref(), Some("blue"));
    let file: AddedSettings = toml::from_str("ring-colour = \"green\"").unwrap();
    assert_eq!(file.ring_colour.as_deref(), Some("green"));
    assert!(toml::from_str::<AddedSettings>("ring-color = \"green\"").is_err());

    let nothing = AddedSettings::default();
    for (given, file, value, source) in [
        (&flag, &file, "blue", "command line or environment"),
        (&nothing, &file, "green", "file"),
        (&nothing, &nothing, "red", "default"),
    ] {
        let merged = given.clone().or(file.clone());
        let counts = merged.ring_colour.unwrap_or_else(|| "red".to_owned());
        let [setting] = AddedSettings::SHOWN else {
            panic!("one setting is shown");
        };
        let shown = setting.setting(&counts, given, file);
        assert_eq!((shown.name.as_str(), shown.kind), ("ring-colour", "text"));
        assert_eq!((shown.value.as_str(), shown.source), (value, source));
    }

    let command = AddedSettings::augment_args(Command::new("settings"));
    let line = "| `--ring-colour` | `PATH` | NAME | red | Colour of the ring. It fades |\n";
    assert!(table(&rows(&command)).ends_with(line));
}
