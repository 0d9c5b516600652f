//! The table option `compaction = {...}`: checked, and stored in the form that Cassandra 5 shows.
//!
//! It has no effect here. Values that Cassandra or ScyllaDB knows are accepted, all others are
//! refused.

use cql::ast::OptionValue;
use cql::error::CqlError;

use super::properties;

const NAME: &str = "compaction";
const PACKAGE: &str = "org.apache.cassandra.db.compaction.";

/// The kind of values that a sub-option takes.
#[derive(Clone, Copy)]
enum SubOptionType {
    Boolean,
    /// An integer not below this number.
    Integer(i64),
    /// A number not below 0.
    Number,
    /// A number above 0.
    Positive,
    /// One of these words. They are written here in capitals; a statement may use any case.
    Word(&'static [&'static str]),
    /// A number of bytes with a unit: `512MiB`.
    Size,
    /// Scaling parameters, separated by commas: `N`, `L4`, `T8`, `-4`.
    Scaling,
    Text,
}

type SubOptions = &'static [(&'static str, SubOptionType)];

/// A compaction strategy with its sub-options.
struct StrategyClass {
    class: &'static str,
    /// Whether the strategy is ScyllaDB's. Its class is then stored without a package.
    is_scyllas: bool,
    /// Whether the defaults of `min_threshold` and `max_threshold` are filled in.
    has_thresholds: bool,
    options: &'static [SubOptions],
}

const COMMON: SubOptions = &[
    ("class", SubOptionType::Text),
    ("enabled", SubOptionType::Boolean),
    ("log_all", SubOptionType::Boolean),
    ("only_purge_repaired_tombstones", SubOptionType::Boolean),
    (
        "provide_overlapping_tombstones",
        SubOptionType::Word(&["NONE", "ROW", "CELL"]),
    ),
    ("tombstone_compaction_interval", SubOptionType::Integer(1)),
    ("tombstone_threshold", SubOptionType::Positive),
    ("unchecked_tombstone_compaction", SubOptionType::Boolean),
];
const THRESHOLDS: SubOptions = &[
    ("min_threshold", SubOptionType::Integer(2)),
    ("max_threshold", SubOptionType::Integer(1)),
];
const TIERED: SubOptions = &[
    ("bucket_high", SubOptionType::Number),
    ("bucket_low", SubOptionType::Number),
    ("min_sstable_size", SubOptionType::Integer(0)),
    ("cold_reads_to_omit", SubOptionType::Number),
];
const LEVELED: SubOptions = &[
    ("sstable_size_in_mb", SubOptionType::Integer(1)),
    ("fanout_size", SubOptionType::Integer(1)),
    ("single_sstable_uplevel", SubOptionType::Boolean),
];
const EXPIRING: SubOptions = &[
    (
        "expired_sstable_check_frequency_seconds",
        SubOptionType::Integer(0),
    ),
    (
        "unsafe_aggressive_sstable_expiration",
        SubOptionType::Boolean,
    ),
];
const WINDOWS: SubOptions = &[
    ("compaction_window_size", SubOptionType::Integer(1)),
    (
        "compaction_window_unit",
        SubOptionType::Word(&["MINUTES", "HOURS", "DAYS"]),
    ),
    (
        "timestamp_resolution",
        SubOptionType::Word(&["SECONDS", "MILLISECONDS", "MICROSECONDS", "NANOSECONDS"]),
    ),
    ("enable_optimized_twcs_queries", SubOptionType::Boolean),
];
const UNIFIED: SubOptions = &[
    ("base_shard_count", SubOptionType::Integer(1)),
    ("flush_size_override", SubOptionType::Size),
    ("min_sstable_size", SubOptionType::Size),
    (
        "overlap_inclusion_method",
        SubOptionType::Word(&["NONE", "SINGLE", "TRANSITIVE"]),
    ),
    ("parallelize_output_shards", SubOptionType::Boolean),
    ("scaling_parameters", SubOptionType::Scaling),
    ("sstable_growth", SubOptionType::Number),
    ("target_sstable_size", SubOptionType::Size),
];
const INCREMENTAL: SubOptions = &[
    ("sstable_size_in_mb", SubOptionType::Integer(1)),
    ("space_amplification_goal", SubOptionType::Positive),
];

const fn of_cassandra(class: &'static str, options: &'static [SubOptions]) -> StrategyClass {
    StrategyClass {
        class,
        is_scyllas: false,
        has_thresholds: true,
        options,
    }
}

const fn of_scylla(class: &'static str, options: &'static [SubOptions]) -> StrategyClass {
    StrategyClass {
        class,
        is_scyllas: true,
        has_thresholds: false,
        options,
    }
}

const STRATEGIES: [StrategyClass; 7] = [
    of_cassandra(
        "SizeTieredCompactionStrategy",
        &[COMMON, THRESHOLDS, TIERED],
    ),
    of_cassandra(
        "LeveledCompactionStrategy",
        &[COMMON, THRESHOLDS, TIERED, LEVELED],
    ),
    of_cassandra(
        "TimeWindowCompactionStrategy",
        &[COMMON, THRESHOLDS, TIERED, EXPIRING, WINDOWS],
    ),
    StrategyClass {
        has_thresholds: false,
        ..of_cassandra("UnifiedCompactionStrategy", &[COMMON, EXPIRING, UNIFIED])
    },
    of_scylla(
        "IncrementalCompactionStrategy",
        &[COMMON, THRESHOLDS, TIERED, INCREMENTAL],
    ),
    of_scylla("InMemoryCompactionStrategy", &[COMMON]),
    of_scylla("NullCompactionStrategy", &[COMMON]),
];

/// Checks the option and returns it as CQL text: with the package of a class of Cassandra, and with
/// the defaults of both thresholds if the class has them filled in.
pub(super) fn text(value: &OptionValue) -> Result<String, CqlError> {
    let entries = properties::map(NAME, value)?;
    let class = entries
        .iter()
        .find(|(key, _)| key == "class")
        .map(|(_, class)| class)
        .ok_or_else(|| {
            CqlError::config("Missing sub-option 'class' for the 'compaction' option")
        })?;
    let strategy = known(class)?;
    for (key, value) in entries {
        let kind = strategy
            .options
            .iter()
            .flat_map(|options| options.iter())
            .find_map(|(name, kind)| (name == key).then_some(*kind))
            .ok_or_else(|| {
                CqlError::config(format!(
                    "Properties specified [{key}] are not understood by {}",
                    strategy.class
                ))
            })?;
        check(kind, key, value)?;
    }
    let package = if strategy.is_scyllas { "" } else { PACKAGE };
    let mut kept = entries.to_vec();
    kept.retain(|(key, _)| key != "class");
    kept.push(("class".to_owned(), format!("{package}{}", strategy.class)));
    if strategy.has_thresholds {
        for (key, default) in [("max_threshold", "32"), ("min_threshold", "4")] {
            if !kept.iter().any(|(name, _)| name == key) {
                kept.push((key.to_owned(), default.to_owned()));
            }
        }
    }
    kept.sort();
    check_together(&kept)?;
    Ok(properties::map_text(&kept))
}

fn known(class: &str) -> Result<&'static StrategyClass, CqlError> {
    let full = match class.contains('.') {
        true => class.to_owned(),
        false => format!("{PACKAGE}{class}"),
    };
    let short = full.strip_prefix(PACKAGE);
    STRATEGIES
        .iter()
        .find(|known| short == Some(known.class))
        .ok_or_else(|| {
            CqlError::config(format!("Unable to find compaction strategy class '{full}'"))
        })
}

fn check(kind: SubOptionType, key: &str, value: &str) -> Result<(), CqlError> {
    let number = value.parse::<f64>().ok().filter(|n| n.is_finite());
    let (is_valid, expected) = match kind {
        SubOptionType::Text => (true, String::new()),
        SubOptionType::Boolean => {
            let lower = value.to_ascii_lowercase();
            (
                ["true", "false"].contains(&lower.as_str()),
                "'true' or 'false'".to_owned(),
            )
        }
        SubOptionType::Integer(least) => (
            value.parse::<i64>().is_ok_and(|number| number >= least),
            format!("an integer of at least {least}"),
        ),
        SubOptionType::Number => (
            number.is_some_and(|number| number >= 0.0),
            "a number that is not negative".to_owned(),
        ),
        SubOptionType::Positive => (
            number.is_some_and(|number| number > 0.0),
            "a number above 0".to_owned(),
        ),
        SubOptionType::Word(words) => (
            words.contains(&value.to_ascii_uppercase().as_str()),
            format!("one of {}", words.join(", ")),
        ),
        SubOptionType::Size => (is_size(value), "a size in bytes, such as 512MiB".to_owned()),
        SubOptionType::Scaling => (
            value.split(',').all(|part| is_scaling(part.trim())),
            "N, L and T with a number of at least 2, or a number, separated by commas".to_owned(),
        ),
    };
    if is_valid {
        return Ok(());
    }
    Err(CqlError::config(format!(
        "Invalid value {value} for '{key}' compaction sub-option - must be {expected}"
    )))
}

/// Checks that the sub-options, with their defaults, agree with one another.
fn check_together(kept: &[(String, String)]) -> Result<(), CqlError> {
    let number = |name: &str| -> Option<f64> {
        let (_, value) = kept.iter().find(|(key, _)| key == name)?;
        value.parse().ok()
    };
    if let (Some(min), Some(max)) = (number("min_threshold"), number("max_threshold"))
        && min > max
    {
        return Err(CqlError::config(format!(
            "Min compaction threshold (got {min}) cannot be greater than max compaction threshold \
             (got {max})"
        )));
    }
    let (low, high) = (number("bucket_low"), number("bucket_high"));
    let (least, most) = (low.unwrap_or(0.5), high.unwrap_or(1.5));
    if (low.is_some() || high.is_some()) && most <= least {
        return Err(CqlError::config(format!(
            "bucket_high value ({most:?}) is less than or equal to the bucket_low value ({least:?})"
        )));
    }
    Ok(())
}

/// Whether the text is a number, an optional prefix and `B`: `1GiB`, `0.5 MB`, `100B`.
fn is_size(text: &str) -> bool {
    let Some(rest) = text.strip_suffix('B') else {
        return false;
    };
    let rest = rest.strip_suffix('i').unwrap_or(rest);
    let number = rest
        .strip_suffix(['k', 'K', 'M', 'G', 'T', 'P', 'E'])
        .unwrap_or(rest);
    number
        .trim_end()
        .parse::<f64>()
        .is_ok_and(|number| number.is_finite() && number >= 0.0)
}

fn is_scaling(text: &str) -> bool {
    if text == "N" {
        return true;
    }
    match text.strip_prefix(['L', 'T']) {
        Some(digits) => {
            digits.bytes().all(|byte| byte.is_ascii_digit())
                && digits.parse::<i32>().is_ok_and(|fan| fan >= 2)
        }
        None => text.parse::<i32>().is_ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept(entries: &[(&str, &str)]) -> Result<String, String> {
        let entries = entries.iter().map(|(k, v)| (k.to_string(), v.to_string()));
        text(&OptionValue::Map(entries.collect())).map_err(|error| error.message)
    }

    // Cassandra's answers to these cases are recorded in tests/compat, area `definitions`.
    #[test]
    fn options_that_only_scylladb_knows_are_accepted() {
        assert_eq!(
            kept(&[
                ("class", "IncrementalCompactionStrategy"),
                ("space_amplification_goal", "1.5")
            ])
            .unwrap(),
            "{'class': 'IncrementalCompactionStrategy', 'space_amplification_goal': '1.5'}"
        );
        assert!(kept(&[("class", "InMemoryCompactionStrategy")]).is_ok());
        let optimised = ("enable_optimized_twcs_queries", "false");
        assert!(kept(&[("class", "TimeWindowCompactionStrategy"), optimised]).is_ok());
        assert!(kept(&[("class", "SizeTieredCompactionStrategy"), optimised]).is_err());
    }

    #[test]
    fn a_mistake_is_named_with_what_may_stand_there() {
        assert_eq!(
            kept(&[
                ("class", "SizeTieredCompactionStrategy"),
                ("min_threshold", "1")
            ])
            .unwrap_err(),
            "Invalid value 1 for 'min_threshold' compaction sub-option - must be an integer of at \
             least 2"
        );
        assert_eq!(
            kept(&[
                ("class", "UnifiedCompactionStrategy"),
                ("target_sstable_size", "big")
            ])
            .unwrap_err(),
            "Invalid value big for 'target_sstable_size' compaction sub-option - must be a size in \
             bytes, such as 512MiB"
        );
    }

    #[test]
    fn scaling_parameters_are_letters_with_numbers() {
        for text in ["N", "T4", "L8", "-4", "4"] {
            assert!(is_scaling(text), "{text}");
        }
        for text in ["", "X4", "T", "T1", "L-4", "NN"] {
            assert!(!is_scaling(text), "{text}");
        }
    }
}
