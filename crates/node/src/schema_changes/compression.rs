//! The table option `compression = {...}`: checked, and stored in the form that Cassandra 5 shows.
//!
//! It has no effect here. It is checked so that a mistake shows where it is made, and so that
//! drivers and tools read the values that Cassandra would show. ScyllaDB's own options are accepted
//! too. Those that Cassandra has under another name are stored under that name.

use cql::ast::OptionValue;
use cql::error::CqlError;

use super::properties;

const NAME: &str = "compression";
const PACKAGE: &str = "org.apache.cassandra.io.compress.";
const MIN_RATIO: &str = "min_compress_ratio";
const DEFAULT_CHUNK_KB: &str = "16";

/// A compressor class, and the options that it has in addition to the options of all classes.
struct CompressorClass {
    class: &'static str,
    options: &'static [&'static str],
    /// Whether the class is ScyllaDB's. It is then stored without a package.
    is_scyllas: bool,
}

const COMPRESSORS: [CompressorClass; 7] = [
    of_cassandra(
        "LZ4Compressor",
        &["lz4_compressor_type", "lz4_high_compressor_level"],
    ),
    of_cassandra("SnappyCompressor", &[]),
    of_cassandra("DeflateCompressor", &[]),
    of_cassandra("ZstdCompressor", &["compression_level"]),
    of_cassandra("NoopCompressor", &[]),
    of_scylla("LZ4WithDictsCompressor", &[]),
    of_scylla("ZstdWithDictsCompressor", &["compression_level"]),
];

const fn of_cassandra(class: &'static str, options: &'static [&'static str]) -> CompressorClass {
    CompressorClass {
        class,
        options,
        is_scyllas: false,
    }
}

const fn of_scylla(class: &'static str, options: &'static [&'static str]) -> CompressorClass {
    CompressorClass {
        class,
        options,
        is_scyllas: true,
    }
}

/// Checks the option and returns it as CQL text: with the package of a class of Cassandra and with
/// the default chunk length, or `{'enabled': 'false'}`.
pub(super) fn text(value: &OptionValue) -> Result<String, CqlError> {
    let entries = in_cassandras_names(properties::map(NAME, value)?);
    let entry = |key: &str| {
        let found = entries.iter().find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_str())
    };
    let enabled = entry("enabled").is_none_or(|text| text.eq_ignore_ascii_case("true"));
    let off = || properties::map_text(&[("enabled".to_owned(), "false".to_owned())]);
    match (entry("class"), enabled) {
        _ if entries.is_empty() => Ok(off()),
        (_, false) if entries.len() > 1 => {
            refused("If the 'enabled' option is set to false no other options must be specified")
        }
        (_, false) => Ok(off()),
        (None, true) => refused("Missing sub-option 'class' for the 'compression' option."),
        (Some(""), true) => refused(
            "The 'class' option must not be empty. To disable compression use 'enabled' : false",
        ),
        (Some(class), true) => of_class(known(class)?, &entries),
    }
}

/// Checks the options of a class and returns them as CQL text, with the default chunk length.
fn of_class(
    compressor: &CompressorClass,
    entries: &[(String, String)],
) -> Result<String, CqlError> {
    let mut kept: Vec<(String, String)> = vec![
        ("chunk_length_in_kb".to_owned(), DEFAULT_CHUNK_KB.to_owned()),
        ("class".to_owned(), full_name(compressor)),
    ];
    for (key, value) in entries {
        check(compressor, key, value)?;
        match key.as_str() {
            "class" | "enabled" => {}
            "chunk_length_in_kb" => kept[0].1.clone_from(value),
            // Shown as Cassandra does: as a number with a fraction, and not at all if it is 0.
            MIN_RATIO => match number(key, value)? {
                0.0 => {}
                ratio => kept.push((key.clone(), format!("{ratio:?}"))),
            },
            _ => kept.push((key.clone(), value.clone())),
        }
    }
    kept.sort();
    Ok(properties::map_text(&kept))
}

/// Renames ScyllaDB's options for the class and the chunk length to Cassandra's. If a statement
/// gives both names, ScyllaDB's is not renamed, and is refused later as unknown.
fn in_cassandras_names(entries: &[(String, String)]) -> Vec<(String, String)> {
    let given = |name: &str| entries.iter().any(|(key, _)| key == name);
    let mut renamed = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        let key = match key.as_str() {
            "sstable_compression" if !given("class") => {
                if value.is_empty() {
                    renamed.push(("enabled".to_owned(), "false".to_owned()));
                    continue;
                }
                "class"
            }
            "chunk_length_kb" if !given("chunk_length_in_kb") => "chunk_length_in_kb",
            other => other,
        };
        renamed.push((key.to_owned(), value.clone()));
    }
    renamed
}

fn known(class: &str) -> Result<&'static CompressorClass, CqlError> {
    let full = match class.contains('.') {
        true => class.to_owned(),
        false => format!("{PACKAGE}{class}"),
    };
    let short = full.strip_prefix(PACKAGE);
    COMPRESSORS
        .iter()
        .find(|known| short == Some(known.class))
        .ok_or_else(|| CqlError::config(format!("Could not create Compression for type {full}")))
}

fn full_name(compressor: &CompressorClass) -> String {
    let package = if compressor.is_scyllas { "" } else { PACKAGE };
    format!("{package}{}", compressor.class)
}

fn check(compressor: &CompressorClass, key: &str, value: &str) -> Result<(), CqlError> {
    match key {
        "class" | "enabled" => Ok(()),
        "chunk_length_in_kb" => {
            let length: i32 = value
                .parse()
                .map_err(|_| CqlError::config("Invalid value for chunk_length_in_kb"))?;
            match length {
                i32::MIN..=0 => refused("Invalid negative or null chunk_length_in_kb"),
                _ if length.count_ones() != 1 => refused("chunk_length_in_kb must be a power of 2"),
                _ => Ok(()),
            }
        }
        MIN_RATIO => match number(key, value)? {
            ratio if ratio.is_sign_negative() => refused("Invalid negative min_compress_ratio"),
            ratio if ratio == 0.0 || (1.0..f64::INFINITY).contains(&ratio) => Ok(()),
            _ => refused("min_compress_ratio can either be 0 or greater than or equal to 1"),
        },
        // An option of ScyllaDB.
        "crc_check_chance" => match number(key, value)? {
            chance if (0.0..=1.0).contains(&chance) => Ok(()),
            _ => refused("crc_check_chance must be between 0.0 and 1.0"),
        },
        _ if !compressor.options.contains(&key) => {
            refused(&format!("Unknown compression options {key}"))
        }
        "compression_level" => level(key, value, -131_072..=22),
        "lz4_high_compressor_level" => level(key, value, 1..=17),
        _ if ["high", "fast"].contains(&value) => Ok(()),
        _ => refused(&format!(
            "Invalid compressor type '{value}' specified for LZ4 parameter '{key}'. Valid options \
             are [high, fast]."
        )),
    }
}

fn number(key: &str, value: &str) -> Result<f64, CqlError> {
    value
        .parse()
        .map_err(|_| CqlError::config(format!("Invalid value {value} for {key}")))
}

fn level(key: &str, value: &str, range: std::ops::RangeInclusive<i32>) -> Result<(), CqlError> {
    if value.parse().is_ok_and(|level| range.contains(&level)) {
        return Ok(());
    }
    refused(&format!(
        "Invalid value [{value}] for parameter '{key}'. Value must be between {} and {}.",
        range.start(),
        range.end()
    ))
}

fn refused<T>(why: &str) -> Result<T, CqlError> {
    Err(CqlError::config(why))
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
    fn options_of_scylladb_are_stored_under_cassandras_names() {
        assert_eq!(
            kept(&[
                ("sstable_compression", "LZ4Compressor"),
                ("chunk_length_kb", "4")
            ])
            .unwrap(),
            "{'chunk_length_in_kb': '4', 'class': 'org.apache.cassandra.io.compress.LZ4Compressor'}"
        );
        assert_eq!(
            kept(&[("sstable_compression", "")]).unwrap(),
            "{'enabled': 'false'}"
        );
        assert_eq!(
            kept(&[
                ("sstable_compression", "ZstdWithDictsCompressor"),
                ("compression_level", "3")
            ])
            .unwrap(),
            "{'chunk_length_in_kb': '16', 'class': 'ZstdWithDictsCompressor', 'compression_level': '3'}"
        );
        assert!(
            kept(&[
                ("class", "LZ4WithDictsCompressor"),
                ("crc_check_chance", "0.5")
            ])
            .is_ok()
        );
    }

    #[test]
    fn a_stored_option_is_read_back_as_itself() {
        for entries in [
            &[][..],
            &[("class", "LZ4Compressor"), ("lz4_compressor_type", "high")],
            &[("sstable_compression", "LZ4WithDictsCompressor")],
        ] {
            let first = kept(entries).unwrap();
            let statement = format!("ALTER TABLE t WITH compression = {first}");
            let parsed = cql::parser::parse_statement(&statement).unwrap();
            let cql::ast::Statement::AlterTable(cql::ast::AlterTable {
                change: cql::ast::AlterTableChange::Options(options),
                ..
            }) = parsed.statement
            else {
                panic!("{statement}");
            };
            assert_eq!(text(&options[0].1).unwrap(), first);
        }
    }

    #[test]
    fn both_names_of_one_thing_are_refused() {
        let twice = [
            ("class", "LZ4Compressor"),
            ("sstable_compression", "LZ4Compressor"),
        ];
        assert_eq!(
            kept(&twice).unwrap_err(),
            "Unknown compression options sstable_compression"
        );
    }
}
