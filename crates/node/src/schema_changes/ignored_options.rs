//! Options of a table that say how it should behave on nodes that this database does not have. They
//! are checked and stored, and a warning says why they have no effect.

use cql::ast::OptionValue;
use cql::error::CqlError;

use super::properties;

/// The modes of ScyllaDB's `tombstone_gc`.
const TOMBSTONE_MODES: [&str; 4] = ["timeout", "repair", "disabled", "immediate"];

/// The name of such an option, with the reason why it has no effect here.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct IgnoredOption {
    name: &'static str,
    reason: &'static str,
}

impl IgnoredOption {
    /// The warning for the table that has the option.
    pub fn warning(&self, keyspace: &str, table: &str) -> String {
        let IgnoredOption { name, reason } = self;
        format!("Option '{name}' of table {keyspace}.{table} has no effect: {reason}")
    }
}

/// Checks the option. Returns it as CQL text, and why it has no effect unless it has its default;
/// `None` if it is another option.
pub(super) fn parse(
    name: &str,
    value: &OptionValue,
) -> Result<Option<(String, Option<IgnoredOption>)>, CqlError> {
    let (name, reason, check): (_, _, fn(&str, &str) -> bool) = match name {
        "extensions" => ("extensions", "Annulus has no extensions", any),
        "memtable" => return memtable(value).map(Some),
        "per_partition_rate_limit" => (
            "per_partition_rate_limit",
            "Annulus does not limit the rate of a partition",
            is_rate_limit,
        ),
        "tablets" => (
            "tablets",
            "tablets spread nothing, as there is one node",
            any,
        ),
        "tombstone_gc" => (
            "tombstone_gc",
            "tombstones go after gc_grace_seconds, as in the mode 'timeout'",
            is_tombstone_gc,
        ),
        _ => return Ok(None),
    };
    let entries = properties::map(name, value)?;
    if let Some((key, value)) = entries.iter().find(|(key, value)| !check(key, value)) {
        return Err(CqlError::config(format!(
            "Invalid value '{value}' for '{key}' of property '{name}'; it takes {}",
            taken(name)
        )));
    }
    let is_default = match name {
        "tombstone_gc" => entries
            .iter()
            .all(|(key, value)| key != "mode" || value == TOMBSTONE_MODES[0]),
        _ => entries.is_empty(),
    };
    let unheeded = (!is_default).then_some(IgnoredOption { name, reason });
    Ok(Some((properties::map_text(entries), unheeded)))
}

/// Any configuration of Cassandra's memtables is taken: which there are is up to its operator.
fn memtable(value: &OptionValue) -> Result<(String, Option<IgnoredOption>), CqlError> {
    let text = properties::scalar("memtable", value)?;
    let unheeded = (text != "default").then_some(IgnoredOption {
        name: "memtable",
        reason: "Annulus has one kind of memtable",
    });
    Ok((properties::quoted(text), unheeded))
}

/// The keys and values of an option whose keys are known.
fn taken(name: &str) -> String {
    match name {
        "tombstone_gc" => format!(
            "a 'mode' of {}, and 'propagation_delay_in_seconds'",
            TOMBSTONE_MODES.join(", ")
        ),
        _ => "'max_reads_per_second' and 'max_writes_per_second', whole numbers".to_owned(),
    }
}

fn any(_key: &str, _value: &str) -> bool {
    true
}

fn is_rate_limit(key: &str, value: &str) -> bool {
    ["max_reads_per_second", "max_writes_per_second"].contains(&key) && value.parse::<u32>().is_ok()
}

fn is_tombstone_gc(key: &str, value: &str) -> bool {
    match key {
        "mode" => TOMBSTONE_MODES.contains(&value),
        "propagation_delay_in_seconds" => value.parse::<u32>().is_ok(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(name: &str, entries: &[(&str, &str)]) -> Result<(String, bool), String> {
        let entries = entries.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        let (text, unheeded) = parse(name, &OptionValue::Map(entries.collect()))
            .map_err(|error| error.message)?
            .unwrap();
        Ok((text, unheeded.is_some()))
    }

    #[test]
    fn an_option_that_asks_for_nothing_is_passed_over() {
        for (name, entries) in [
            ("extensions", &[][..]),
            ("tablets", &[]),
            ("per_partition_rate_limit", &[]),
            ("tombstone_gc", &[]),
            ("tombstone_gc", &[("mode", "timeout")]),
            ("tombstone_gc", &[("propagation_delay_in_seconds", "3600")]),
        ] {
            assert!(!map(name, entries).unwrap().1, "{name} = {entries:?}");
        }
        for (name, entry) in [
            ("extensions", ("paxos", "0xff")),
            ("tablets", ("min_tablet_count", "8")),
            ("per_partition_rate_limit", ("max_reads_per_second", "100")),
            ("tombstone_gc", ("mode", "immediate")),
        ] {
            let (text, is_unheeded) = map(name, &[entry]).unwrap();
            assert!(is_unheeded, "{name}");
            assert_eq!(text, format!("{{'{}': '{}'}}", entry.0, entry.1));
        }
    }

    #[test]
    fn unknown_keys_and_values_are_refused() {
        for (name, entry) in [
            ("per_partition_rate_limit", ("max_reads_per_minute", "100")),
            ("per_partition_rate_limit", ("max_writes_per_second", "-1")),
            ("per_partition_rate_limit", ("max_writes_per_second", "x")),
            ("tombstone_gc", ("mode", "sometimes")),
            ("tombstone_gc", ("propagation_delay_in_seconds", "-1")),
            ("tombstone_gc", ("delay", "1")),
        ] {
            let message = map(name, &[entry]).unwrap_err();
            let expected = format!(
                "Invalid value '{}' for '{}' of property '{name}'; it takes ",
                entry.1, entry.0
            );
            assert!(message.starts_with(&expected), "{message}");
        }
        assert_eq!(
            map("memtable", &[]).unwrap_err(),
            "Invalid value for property 'memtable'. It should be a string"
        );
    }
}
