//! Commands of the shell, which it carries out itself.

use scylla::statement::{Consistency, SerialConsistency};

use super::tokens::{ShellTokenKind, tokens};

/// First words of commands, which end with their line. cqlsh has most of them. EXIT and QUIT are
/// there for fingers that know them.
const WORDS: [&str; 14] = [
    "CAPTURE",
    "CLEAR",
    "CONSISTENCY",
    "COPY",
    "DESC",
    "DESCRIBE",
    "EXIT",
    "EXPAND",
    "HELP",
    "PAGING",
    "QUIT",
    "SERIAL",
    "SOURCE",
    "TRACING",
];

/// Names of consistency levels.
pub(super) const LEVELS: [(&str, Consistency); 11] = [
    ("ANY", Consistency::Any),
    ("ONE", Consistency::One),
    ("TWO", Consistency::Two),
    ("THREE", Consistency::Three),
    ("QUORUM", Consistency::Quorum),
    ("ALL", Consistency::All),
    ("LOCAL_QUORUM", Consistency::LocalQuorum),
    ("EACH_QUORUM", Consistency::EachQuorum),
    ("LOCAL_ONE", Consistency::LocalOne),
    ("SERIAL", Consistency::Serial),
    ("LOCAL_SERIAL", Consistency::LocalSerial),
];

/// A command of the shell.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShellCommand {
    /// `\q`, EXIT, QUIT.
    Quit,
    /// `\?`, HELP.
    Help,
    /// CLEAR: the screen.
    Clear,
    /// `\d`: the tables, or the definition of one thing.
    Describe(Option<String>),
    /// `\timing [on|off]`; `None` changes it.
    Timing(Option<bool>),
    /// `EXPAND [ON|OFF]`, `\x`; `None` shows it.
    Expand(Option<bool>),
    /// `\x`.
    ChangeExpand,
    /// `TRACING [ON|OFF]`; `None` shows it.
    Tracing(Option<bool>),
    /// `PAGING [ON|OFF|rows]`; `None` shows it, and no rows turn pages off.
    Paging(Option<PageRows>),
    /// `CONSISTENCY [level]`; `None` shows it.
    Consistency(Option<Consistency>),
    /// `SERIAL CONSISTENCY [level]`; `None` shows it.
    SerialConsistency(Option<SerialConsistency>),
    /// `SOURCE 'file'`.
    Source(String),
    /// `.import` or `.export` with their arguments.
    Program {
        /// The command of `annulus`.
        name: &'static str,
        /// Its arguments.
        arguments: Vec<String>,
    },
}

/// The rows of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PageRows {
    /// As many as at the start.
    Default,
    /// All rows in one answer.
    All,
    /// So many.
    Of(i32),
}

/// Whether a statement whose first token is this one, in capitals, is a command.
pub(super) fn begins_command(first: &str) -> bool {
    matches!(first, "\\" | "." | "?") || WORDS.contains(&first)
}

/// Reads a command. `None` if the text is a statement for the server.
///
/// # Errors
/// If it is a command that can't be carried out, with the form that can.
pub(super) fn parse(text: &str) -> Option<Result<ShellCommand, String>> {
    let text = text.trim().trim_end_matches(';').trim_end();
    if let Some(rest) = text.strip_prefix('\\') {
        return Some(backslash(rest));
    }
    if let Some(rest) = text.strip_prefix('.') {
        return Some(program(rest));
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    let first = words.first()?.to_ascii_uppercase();
    let rest = &words[1..];
    Some(match (first.as_str(), rest) {
        ("EXIT" | "QUIT", _) => Ok(ShellCommand::Quit),
        ("HELP" | "?", _) => Ok(ShellCommand::Help),
        ("CLEAR", []) => Ok(ShellCommand::Clear),
        ("EXPAND", rest) => switch("EXPAND", rest).map(ShellCommand::Expand),
        ("TRACING", rest) => switch("TRACING", rest).map(ShellCommand::Tracing),
        ("PAGING", rest) => paging(rest),
        ("CONSISTENCY", rest) => consistency(rest),
        ("SERIAL", [word, rest @ ..]) if word.eq_ignore_ascii_case("CONSISTENCY") => serial(rest),
        ("SOURCE", _) => source(text),
        ("COPY", _) => {
            Err("COPY is cqlsh's: .import FILE... --table ks.t, .export ks.t --to FILE".to_owned())
        }
        ("CAPTURE", _) => {
            Err("CAPTURE is cqlsh's: annulus shell -e \"SELECT ...\" --csv > FILE".to_owned())
        }
        _ => return None,
    })
}

fn backslash(rest: &str) -> Result<ShellCommand, String> {
    let mut words = rest.split_whitespace();
    let name = words.next().unwrap_or("");
    let argument = words.next();
    match name {
        "q" => Ok(ShellCommand::Quit),
        "?" | "h" => Ok(ShellCommand::Help),
        "d" => Ok(ShellCommand::Describe(argument.map(str::to_owned))),
        "x" => Ok(ShellCommand::ChangeExpand),
        "timing" => switch("\\timing", argument.as_slice()).map(ShellCommand::Timing),
        "i" => match argument {
            Some(_) => Ok(ShellCommand::Source(
                rest.trim_start_matches('i').trim().to_owned(),
            )),
            None => Err("\\i FILE".to_owned()),
        },
        _ => Err(format!("\\{name} is no command: \\? lists them")),
    }
}

fn program(rest: &str) -> Result<ShellCommand, String> {
    let mut words = arguments(rest)?.into_iter();
    let name = match words.next().as_deref() {
        Some("import") => "import",
        Some("export") => "export",
        Some("exit" | "quit") => return Ok(ShellCommand::Quit),
        Some("help") => return Ok(ShellCommand::Help),
        Some("tables") => return Ok(ShellCommand::Describe(None)),
        other => {
            let name = other.unwrap_or("");
            return Err(format!(
                ".{name} is no command: .import FILE... --table ks.t, and \\? lists others"
            ));
        }
    };
    Ok(ShellCommand::Program {
        name,
        arguments: words.collect(),
    })
}

/// Cuts a line into words, as a shell of the system does with quotes and without anything else.
fn arguments(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in line.chars() {
        match quote {
            Some(end) if c == end => quote = None,
            Some(_) => word.get_or_insert_default().push(c),
            None if c == '\'' || c == '"' => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            None if c.is_whitespace() => words.extend(word.take()),
            None => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    match quote {
        Some(quote) => Err(format!("the word that begins with {quote} has no end")),
        None => Ok(words),
    }
}

fn switch(name: &str, words: &[&str]) -> Result<Option<bool>, String> {
    match words {
        [] => Ok(None),
        [word] if word.eq_ignore_ascii_case("ON") => Ok(Some(true)),
        [word] if word.eq_ignore_ascii_case("OFF") => Ok(Some(false)),
        _ => Err(format!("{name} [ON | OFF]")),
    }
}

fn paging(words: &[&str]) -> Result<ShellCommand, String> {
    let rows = match words {
        [] => None,
        [word] if word.eq_ignore_ascii_case("ON") => Some(PageRows::Default),
        [word] if word.eq_ignore_ascii_case("OFF") => Some(PageRows::All),
        [word] => match word.parse() {
            Ok(rows) if rows > 0 => Some(PageRows::Of(rows)),
            _ => return Err("PAGING [ON | OFF | rows of a page]".to_owned()),
        },
        _ => return Err("PAGING [ON | OFF | rows of a page]".to_owned()),
    };
    Ok(ShellCommand::Paging(rows))
}

fn consistency(words: &[&str]) -> Result<ShellCommand, String> {
    let [word] = words else {
        return match words {
            [] => Ok(ShellCommand::Consistency(None)),
            _ => Err(format!("CONSISTENCY [level]; levels: {}", level_names())),
        };
    };
    let found = LEVELS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(word));
    match found {
        Some((_, level)) => Ok(ShellCommand::Consistency(Some(*level))),
        None => Err(format!("{word} is no level: {}", level_names())),
    }
}

fn serial(words: &[&str]) -> Result<ShellCommand, String> {
    let level = match words {
        [] => None,
        [word] if word.eq_ignore_ascii_case("SERIAL") => Some(SerialConsistency::Serial),
        [word] if word.eq_ignore_ascii_case("LOCAL_SERIAL") => Some(SerialConsistency::LocalSerial),
        _ => return Err("SERIAL CONSISTENCY [SERIAL | LOCAL_SERIAL]".to_owned()),
    };
    Ok(ShellCommand::SerialConsistency(level))
}

fn level_names() -> String {
    LEVELS.map(|(name, _)| name).join(", ")
}

/// SOURCE, with the name of a file in quotes, or without.
fn source(text: &str) -> Result<ShellCommand, String> {
    let name = text["SOURCE".len()..].trim();
    let name = name
        .strip_prefix('\'')
        .and_then(|name| name.strip_suffix('\''))
        .map_or(name.to_owned(), |name| name.replace("''", "'"));
    match name.as_str() {
        "" => Err("SOURCE 'file'".to_owned()),
        _ => Ok(ShellCommand::Source(name)),
    }
}

/// Whether a statement is a DESCRIBE.
pub(super) fn is_describe(statement: &str) -> bool {
    let mut words = tokens(statement, 0).filter(|token| token.kind == ShellTokenKind::Word);
    words.next().is_some_and(|token| {
        let word = &statement[token.range];
        word.eq_ignore_ascii_case("DESCRIBE") || word.eq_ignore_ascii_case("DESC")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_read() {
        use ShellCommand::*;
        for (text, command) in [
            ("\\q", Quit),
            ("exit;", Quit),
            ("\\d", Describe(None)),
            ("\\d ks.films", Describe(Some("ks.films".to_owned()))),
            ("\\timing", Timing(None)),
            ("\\timing on", Timing(Some(true))),
            ("expand On;", Expand(Some(true))),
            ("TRACING OFF", Tracing(Some(false))),
            ("PAGING 20", Paging(Some(PageRows::Of(20)))),
            ("paging off", Paging(Some(PageRows::All))),
            ("CONSISTENCY", ShellCommand::Consistency(None)),
            (
                "consistency quorum",
                ShellCommand::Consistency(Some(scylla::statement::Consistency::Quorum)),
            ),
            ("SOURCE 'it''s.cql'", Source("it's.cql".to_owned())),
        ] {
            assert_eq!(parse(text), Some(Ok(command)), "{text}");
        }
        let import = parse(".import 'a b.csv' --table ks.t").unwrap().unwrap();
        let arguments = ["a b.csv", "--table", "ks.t"].map(str::to_owned).to_vec();
        assert_eq!(
            import,
            Program {
                name: "import",
                arguments
            }
        );
    }

    #[test]
    fn wrong_commands_name_the_right_form() {
        for (text, named) in [
            ("\\foo", "\\?"),
            (".foo", ".import"),
            (".import 'a", "has no end"),
            ("PAGING -1", "rows"),
            ("CONSISTENCY MOST", "LOCAL_QUORUM"),
            ("EXPAND MAYBE", "ON | OFF"),
            ("COPY t TO 'x'", ".export"),
        ] {
            let error = parse(text).unwrap().unwrap_err();
            assert!(error.contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn statements_are_the_servers() {
        for text in ["SELECT 1", "DESCRIBE TABLES", "USE ks", "INSERT"] {
            assert_eq!(parse(text), None, "{text}");
        }
        assert!(is_describe("desc tables") && is_describe("/* a */ DESCRIBE x"));
        assert!(!is_describe("SELECT describe"));
    }
}
