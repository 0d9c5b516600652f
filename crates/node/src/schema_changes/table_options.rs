//! The options of a table: checked, and stored as CQL text.
//!
//! `default_time_to_live`, `gc_grace_seconds` and `cdc` have an effect here. All others concern
//! files and nodes that this database does not have. They are checked so that a mistake shows where
//! it is made, and stored to be shown again. The client gets a warning for those that promise more
//! than speed ([`super::ignored_options`]).

use std::collections::BTreeMap;

use cql::ast::OptionValue;
use cql::error::CqlError;
use schema::{CdcOptions, Table};

use super::ignored_options::{self, IgnoredOption};
use super::{cdc, compaction, compression, properties, retry};
use crate::modify::MAX_TTL_S;

/// The default of `gc_grace_seconds`, which is ten days as in Cassandra.
pub(super) const DEFAULT_GC_GRACE_S: u32 = 10 * 24 * 60 * 60;

const DEFAULT_MIN_INDEX_INTERVAL: i32 = 128;
const DEFAULT_MAX_INDEX_INTERVAL: i32 = 2048;

/// A Bloom filter's chance of false positives must be greater than this, as no filter can be built
/// for a smaller chance.
const MIN_BLOOM_FILTER_FP_CHANCE: f64 = 6.71e-5;

/// The options that a statement gives.
#[derive(Clone, Debug, Default)]
pub(super) struct TableOptions {
    default_ttl_s: Option<u32>,
    gc_grace_s: Option<u32>,
    pub cdc: Option<CdcOptions>,
    /// The other options by name, as CQL text.
    kept: BTreeMap<String, String>,
    ignored: Vec<IgnoredOption>,
}

/// The kind of values that an option takes.
enum OptionValueType {
    Text,
    Boolean,
    /// An integer not below this number.
    Integer(i32),
    /// A number from 0 to 1.
    Chance,
    BloomFilterChance,
    Compaction,
    Compression,
    Caching,
    Retry,
    ReadRepair,
}

fn kind(name: &str) -> Option<OptionValueType> {
    Some(match name {
        "comment" => OptionValueType::Text,
        "allow_auto_snapshot" | "incremental_backups" | "in_memory" => OptionValueType::Boolean,
        "memtable_flush_period_in_ms" | "paxos_grace_seconds" => OptionValueType::Integer(0),
        "min_index_interval" | "max_index_interval" => OptionValueType::Integer(1),
        "crc_check_chance" | "read_repair_chance" | "dclocal_read_repair_chance" => {
            OptionValueType::Chance
        }
        "bloom_filter_fp_chance" => OptionValueType::BloomFilterChance,
        "compaction" => OptionValueType::Compaction,
        "compression" => OptionValueType::Compression,
        "caching" => OptionValueType::Caching,
        "speculative_retry" | "additional_write_policy" => OptionValueType::Retry,
        "read_repair" => OptionValueType::ReadRepair,
        _ => return None,
    })
}

impl TableOptions {
    /// Reads and checks the options.
    ///
    /// # Errors
    /// Unknown names, and values of the wrong type or out of range, with Cassandra's texts.
    pub fn parse(options: &[(String, OptionValue)]) -> Result<Self, CqlError> {
        let mut parsed = TableOptions::default();
        for (name, value) in options {
            match name.as_str() {
                "default_time_to_live" => {
                    parsed.default_ttl_s = Some(at_most(name, seconds(name, value)?, MAX_TTL_S)?);
                }
                "gc_grace_seconds" => parsed.gc_grace_s = Some(seconds(name, value)?),
                "cdc" => parsed.cdc = Some(cdc::parse(value)?),
                _ => {
                    if let Some((text, unheeded)) = ignored_options::parse(name, value)? {
                        parsed.kept.insert(name.clone(), text);
                        parsed.ignored.extend(unheeded);
                        continue;
                    }
                    let kind = kind(name).ok_or_else(|| properties::unknown(name))?;
                    parsed.kept.insert(name.clone(), text(name, value, kind)?);
                }
            }
        }
        Ok(parsed)
    }

    /// The warnings that options of the table have no effect.
    pub fn warnings(&self, keyspace: &str, table: &str) -> Vec<String> {
        let unheeded = self.ignored.iter();
        unheeded
            .map(|unheeded| unheeded.warning(keyspace, table))
            .collect()
    }

    /// Sets these options of a table. Options that the statement does not give stay as they are.
    ///
    /// # Errors
    /// If the options of the table then contradict each other.
    pub fn apply(&self, table: &mut Table) -> Result<(), CqlError> {
        if let Some(ttl_s) = self.default_ttl_s {
            table.default_ttl_s = ttl_s;
        }
        if let Some(gc_grace_s) = self.gc_grace_s {
            table.gc_grace_s = gc_grace_s;
        }
        if let Some(cdc) = &self.cdc {
            table.cdc = Some(cdc.clone());
        }
        table
            .options
            .extend(self.kept.iter().map(|(k, v)| (k.clone(), v.clone())));
        check_index_intervals(&table.options)
    }
}

fn check_index_intervals(options: &BTreeMap<String, String>) -> Result<(), CqlError> {
    let interval = |name: &str, default: i32| {
        options
            .get(name)
            .and_then(|text| text.parse().ok())
            .unwrap_or(default)
    };
    let min = interval("min_index_interval", DEFAULT_MIN_INDEX_INTERVAL);
    let max = interval("max_index_interval", DEFAULT_MAX_INDEX_INTERVAL);
    if max < min {
        return Err(CqlError::config(format!(
            "max_index_interval must be greater than or equal to min_index_interval ({min}) (got \
             {max})."
        )));
    }
    Ok(())
}

fn seconds(name: &str, value: &OptionValue) -> Result<u32, CqlError> {
    let seconds = at_least(name, properties::integer(name, value)?, 0)?;
    Ok(seconds.unsigned_abs())
}

fn at_least(name: &str, number: i32, least: i32) -> Result<i32, CqlError> {
    if number < least {
        return Err(CqlError::config(format!(
            "{name} must be greater than or equal to {least} (got {number})"
        )));
    }
    Ok(number)
}

fn at_most(name: &str, number: u32, most: i32) -> Result<u32, CqlError> {
    if number > most.unsigned_abs() {
        return Err(CqlError::config(format!(
            "{name} must be less than or equal to {most} (got {number})"
        )));
    }
    Ok(number)
}

/// Checks the value and returns it as CQL text.
fn text(name: &str, value: &OptionValue, kind: OptionValueType) -> Result<String, CqlError> {
    Ok(match kind {
        OptionValueType::Text => properties::quoted(properties::scalar(name, value)?),
        OptionValueType::Boolean => properties::boolean(name, value)?.to_string(),
        OptionValueType::Integer(least) => {
            at_least(name, properties::integer(name, value)?, least)?.to_string()
        }
        OptionValueType::Chance => {
            let chance = properties::double(name, value)?;
            if !(0.0..=1.0).contains(&chance) {
                return Err(CqlError::config(format!(
                    "{name} must be larger than or equal to 0 and smaller than or equal to 1.0 \
                     (got {chance})"
                )));
            }
            format!("{chance:?}")
        }
        OptionValueType::BloomFilterChance => {
            let chance = properties::double(name, value)?;
            if chance <= MIN_BLOOM_FILTER_FP_CHANCE || chance > 1.0 {
                return Err(CqlError::config(format!(
                    "{name} must be larger than 6.71E-5 and less than or equal to 1.0 (got \
                     {chance:?})"
                )));
            }
            format!("{chance:?}")
        }
        OptionValueType::Compaction => compaction::text(value)?,
        OptionValueType::Compression => compression::text(value)?,
        OptionValueType::Caching => caching(name, value)?,
        OptionValueType::Retry => retry::text(name, value)?,
        OptionValueType::ReadRepair => {
            let text = properties::scalar(name, value)?;
            let upper = text.to_ascii_uppercase();
            if !["BLOCKING", "NONE"].contains(&upper.as_str()) {
                return Err(CqlError::config(format!(
                    "Invalid value {text} for option '{name}'"
                )));
            }
            properties::quoted(&upper)
        }
    })
}

fn caching(name: &str, value: &OptionValue) -> Result<String, CqlError> {
    let mut kept = BTreeMap::from([
        ("keys".to_owned(), "ALL".to_owned()),
        ("rows_per_partition".to_owned(), "NONE".to_owned()),
    ]);
    for (key, text) in properties::map(name, value)? {
        let upper = text.to_ascii_uppercase();
        let is_word = ["ALL", "NONE"].contains(&upper.as_str());
        let is_valid = match key.as_str() {
            "keys" => is_word,
            "rows_per_partition" => is_word || text.parse::<u32>().is_ok(),
            // An option of ScyllaDB.
            "enabled" => properties::read_boolean(text).is_some(),
            _ => {
                return Err(CqlError::config(format!(
                    "Invalid caching sub-option {key}: only 'keys', 'rows_per_partition' and \
                     'enabled' are allowed"
                )));
            }
        };
        if !is_valid {
            return Err(CqlError::config(format!(
                "Invalid value '{text}' for caching sub-option '{key}'"
            )));
        }
        let text = if is_word { &upper } else { text };
        kept.insert(key.clone(), text.clone());
    }
    let kept: Vec<(String, String)> = kept.into_iter().collect();
    Ok(properties::map_text(&kept))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(name: &str, value: OptionValue) -> Result<TableOptions, String> {
        TableOptions::parse(&[(name.to_owned(), value)]).map_err(|error| error.message)
    }

    fn scalar(name: &str, value: &str) -> Result<TableOptions, String> {
        parse(name, OptionValue::Scalar(value.to_owned()))
    }

    fn map(name: &str, entries: &[(&str, &str)]) -> Result<TableOptions, String> {
        let entries = entries
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()));
        parse(name, OptionValue::Map(entries.collect()))
    }

    #[test]
    fn stored_options_are_cql_text() {
        let kept = |options: Result<TableOptions, String>| {
            options.unwrap().kept.into_values().next().unwrap()
        };
        assert_eq!(kept(scalar("comment", "it's")), "'it''s'");
        assert_eq!(kept(scalar("bloom_filter_fp_chance", "0.10")), "0.1");
        assert_eq!(kept(scalar("crc_check_chance", "1")), "1.0");
        assert_eq!(kept(scalar("min_index_interval", "64")), "64");
        assert_eq!(
            kept(scalar("speculative_retry", "MIN(99p, 50ms)")),
            "'MIN(99p,50ms)'"
        );
        assert_eq!(kept(scalar("read_repair", "none")), "'NONE'");
        assert_eq!(
            kept(map("compaction", &[("class", "LeveledCompactionStrategy")])),
            "{'class': 'org.apache.cassandra.db.compaction.LeveledCompactionStrategy', \
             'max_threshold': '32', 'min_threshold': '4'}"
        );
        assert_eq!(kept(map("compression", &[])), "{'enabled': 'false'}");
        assert_eq!(
            kept(map("caching", &[("keys", "none")])),
            "{'keys': 'NONE', 'rows_per_partition': 'NONE'}"
        );
    }

    #[test]
    #[expect(
        clippy::too_many_lines,
        reason = "one table: each wrong value with its message"
    )]
    fn wrong_values_are_explained() {
        for (name, value, message) in [
            ("foo", "1", "Unknown property 'foo'"),
            (
                "gc_grace_seconds",
                "-1",
                "gc_grace_seconds must be greater than or equal to 0 (got -1)",
            ),
            (
                "gc_grace_seconds",
                "x",
                "Invalid integer value x for 'gc_grace_seconds'",
            ),
            (
                "default_time_to_live",
                "-1",
                "default_time_to_live must be greater than or equal to 0 (got -1)",
            ),
            (
                "default_time_to_live",
                "630720001",
                "default_time_to_live must be less than or equal to 630720000 (got 630720001)",
            ),
            (
                "crc_check_chance",
                "1.5",
                "crc_check_chance must be larger than or equal to 0 and smaller than or equal to \
                 1.0 (got 1.5)",
            ),
            (
                "bloom_filter_fp_chance",
                "0",
                "bloom_filter_fp_chance must be larger than 6.71E-5 and less than or equal to 1.0 \
                 (got 0.0)",
            ),
            (
                "min_index_interval",
                "0",
                "min_index_interval must be greater than or equal to 1 (got 0)",
            ),
            (
                "read_repair",
                "maybe",
                "Invalid value maybe for option 'read_repair'",
            ),
            (
                "compaction",
                "x",
                "Invalid value for property 'compaction'. It should be a map",
            ),
        ] {
            assert_eq!(
                scalar(name, value).unwrap_err(),
                message,
                "{name} = {value}"
            );
        }
        assert_eq!(
            map("compaction", &[("enabled", "true")]).unwrap_err(),
            "Missing sub-option 'class' for the 'compaction' option"
        );
        assert_eq!(
            map("caching", &[("key", "ALL")]).unwrap_err(),
            "Invalid caching sub-option key: only 'keys', 'rows_per_partition' and 'enabled' are \
             allowed"
        );
        assert_eq!(
            map("caching", &[("keys", "SOME")]).unwrap_err(),
            "Invalid value 'SOME' for caching sub-option 'keys'"
        );
        assert_eq!(
            map("comment", &[]).unwrap_err(),
            "Invalid value for property 'comment'. It should be a string"
        );
    }
}
