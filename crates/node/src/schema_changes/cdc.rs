//! The table option `cdc = {...}`, and the requirements of vector and full-text indexes on it.

use cql::ast::OptionValue;
use cql::error::CqlError;
use schema::{CdcOptions, DeltaMode, ImageMode, SearchClass, Table};

use super::properties;

/// The default time to live of log rows, and the shortest that an index service accepts: one day,
/// in seconds.
pub(super) const DEFAULT_TTL_S: u32 = 24 * 60 * 60;

/// Reads the option: ScyllaDB's map, or Cassandra's `true` and `false`.
pub(super) fn parse(value: &OptionValue) -> Result<CdcOptions, CqlError> {
    let mut options = CdcOptions {
        enabled: false,
        preimage: ImageMode::Off,
        postimage: false,
        delta: DeltaMode::Full,
        ttl_s: DEFAULT_TTL_S,
    };
    let entries = match value {
        OptionValue::Scalar(_) => {
            options.enabled = properties::boolean("cdc", value)?;
            return Ok(options);
        }
        OptionValue::Map(_) => properties::map("cdc", value)?,
    };
    for (key, text) in entries {
        let invalid =
            || CqlError::config(format!("Invalid value for CDC option \"{key}\": {text}"));
        let lower = text.to_ascii_lowercase();
        match key.to_ascii_lowercase().as_str() {
            "enabled" => {
                options.enabled = properties::read_boolean(text).ok_or_else(invalid)?;
            }
            "preimage" if lower == "full" => options.preimage = ImageMode::Full,
            "preimage" => {
                options.preimage = match properties::read_boolean(text).ok_or_else(invalid)? {
                    true => ImageMode::On,
                    false => ImageMode::Off,
                };
            }
            "postimage" => {
                options.postimage = properties::read_boolean(text).ok_or_else(invalid)?;
            }
            "delta" => {
                options.delta = match lower.as_str() {
                    "full" => DeltaMode::Full,
                    "keys" => DeltaMode::Keys,
                    _ => return Err(invalid()),
                };
            }
            "ttl" => {
                // A client's TTL must fit in a signed 32-bit number of seconds.
                options.ttl_s = text
                    .parse::<i32>()
                    .ok()
                    .and_then(|ttl_s| u32::try_from(ttl_s).ok())
                    .ok_or_else(invalid)?;
            }
            _ => return Err(CqlError::config(format!("Invalid CDC option: {key}"))),
        }
    }
    Ok(options)
}

/// Checks that a table's log serves an index of the class that is about to be created.
pub(super) fn check_for_new_index(
    cdc: Option<&CdcOptions>,
    class: SearchClass,
) -> Result<(), CqlError> {
    match cdc {
        None => Ok(()),
        Some(options) if !options.enabled => Err(CqlError::invalid(format!(
            "Cannot create the {} when CDC is explicitly disabled: set cdc = {{'enabled': true}} \
             on the table first",
            class.noun()
        ))),
        Some(options) => check_requirements(options, class),
    }
}

/// Checks a new value of the option against the indexes of index services that the table has.
pub(super) fn check_alter(table: &Table, new: &CdcOptions) -> Result<(), CqlError> {
    let classes = table.indexes.values().map(|index| index.class());
    // Vector indexes first: the texts about them are ScyllaDB's.
    let Some(class) = classes.min_by_key(|class| *class != SearchClass::Vector) else {
        return Ok(());
    };
    if !new.enabled {
        return Err(CqlError::invalid(format!(
            "Cannot disable CDC when {} is enabled on the table. Drop the {} first, then disable \
             CDC",
            feature(class),
            class.noun()
        )));
    }
    check_requirements(new, class)
}

/// The name of the feature that indexes of the class serve.
fn feature(class: SearchClass) -> &'static str {
    match class {
        SearchClass::Vector => "Vector Search",
        SearchClass::FullText => "Full-Text Search",
    }
}

fn check_requirements(options: &CdcOptions, class: SearchClass) -> Result<(), CqlError> {
    let refused = |what: String| {
        Err(CqlError::invalid(format!(
            "CDC log must meet the minimal requirements of {}: {what}",
            feature(class)
        )))
    };
    if options.ttl_s != 0 && options.ttl_s < DEFAULT_TTL_S {
        return refused(format!(
            "its TTL must be 0 or at least {DEFAULT_TTL_S} seconds (24 hours), but is {}",
            options.ttl_s
        ));
    }
    if options.delta == DeltaMode::Keys && !options.postimage {
        return refused("'delta' must be 'full' or 'postimage' true".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(entries: &[(&str, &str)]) -> Result<CdcOptions, String> {
        let entries = entries
            .iter()
            .map(|(key, value)| (key.to_string(), value.to_string()))
            .collect();
        parse(&OptionValue::Map(entries)).map_err(|error| error.message)
    }

    #[test]
    fn both_forms_are_read() {
        let on = parse(&OptionValue::Scalar("true".to_owned())).unwrap();
        assert_eq!(options(&[("enabled", "true")]), Ok(on.clone()));
        assert!(on.enabled);
        assert_eq!(
            options(&[
                ("enabled", "true"),
                ("preimage", "full"),
                ("postimage", "true"),
                ("delta", "keys"),
                ("ttl", "0"),
            ]),
            Ok(CdcOptions {
                enabled: true,
                preimage: ImageMode::Full,
                postimage: true,
                delta: DeltaMode::Keys,
                ttl_s: 0,
            })
        );
    }

    #[test]
    fn wrong_entries_are_named() {
        assert_eq!(
            options(&[("on", "true")]).unwrap_err(),
            "Invalid CDC option: on"
        );
        for (key, value) in [
            ("enabled", "maybe"),
            ("preimage", "half"),
            ("postimage", "full"),
            ("delta", "none"),
            ("ttl", "-1"),
            ("ttl", "1h"),
        ] {
            assert_eq!(
                options(&[(key, value)]).unwrap_err(),
                format!("Invalid value for CDC option \"{key}\": {value}")
            );
        }
    }

    #[test]
    fn a_vector_index_needs_a_day_and_the_values() {
        let check = |entries: &[(&str, &str)]| {
            let options = options(&[&[("enabled", "true")], entries].concat()).unwrap();
            let checked = check_for_new_index(Some(&options), SearchClass::Vector);
            checked.map_err(|error| error.message)
        };
        assert_eq!(check_for_new_index(None, SearchClass::Vector), Ok(()));
        assert_eq!(check(&[("ttl", "0")]), Ok(()));
        assert_eq!(check(&[("ttl", "86400")]), Ok(()));
        assert_eq!(check(&[("delta", "keys"), ("postimage", "true")]), Ok(()));
        let requirements = "CDC log must meet the minimal requirements";
        assert!(
            check(&[("ttl", "86399")])
                .unwrap_err()
                .contains(requirements)
        );
        assert!(
            check(&[("delta", "keys")])
                .unwrap_err()
                .contains(requirements)
        );
        let off = parse(&OptionValue::Scalar("false".to_owned())).unwrap();
        for class in [SearchClass::Vector, SearchClass::FullText] {
            let error = check_for_new_index(Some(&off), class).unwrap_err();
            assert!(error.message.contains(class.noun()), "{}", error.message);
        }
    }
}
