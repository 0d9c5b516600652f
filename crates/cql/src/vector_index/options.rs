//! `WITH OPTIONS = {...}` of a vector index.

use std::collections::BTreeMap;

use crate::error::CqlError;

/// Names of options that the database itself adds to an index. Users can't give them.
const RESERVED: [&str; 3] = ["class_name", "index_version", "target"];

/// The values that an option can have.
enum Kind {
    /// One of these words, in upper or lower case.
    OneOf(&'static [&'static str]),
    Integer {
        min: i64,
        max: i64,
    },
    Float {
        min: f64,
        max: f64,
    },
    Any,
    /// The number of dimensions of the indexed column.
    Dimensions,
}

const OPTIONS: [(&str, Kind); 9] = [
    (
        "similarity_function",
        Kind::OneOf(&["cosine", "euclidean", "dot_product"]),
    ),
    (
        "maximum_node_connections",
        Kind::Integer { min: 1, max: 512 },
    ),
    (
        "construction_beam_width",
        Kind::Integer { min: 1, max: 4096 },
    ),
    ("search_beam_width", Kind::Integer { min: 1, max: 4096 }),
    (
        "quantization",
        Kind::OneOf(&["f32", "f16", "bf16", "i8", "b1"]),
    ),
    (
        "oversampling",
        Kind::Float {
            min: 1.0,
            max: 100.0,
        },
    ),
    ("rescoring", Kind::OneOf(&["true", "false"])),
    ("source_model", Kind::Any),
    ("dimensions", Kind::Dimensions),
];

/// Checks the options of an index on a column of `dimensions` dimensions.
///
/// # Errors
/// If an option is reserved, unknown or has a wrong value. The texts are ScyllaDB's.
pub fn check(options: &BTreeMap<String, String>, dimensions: u16) -> Result<(), CqlError> {
    for (key, value) in options {
        if RESERVED.contains(&key.as_str()) {
            return Err(CqlError::invalid(format!(
                "Cannot specify {key} as a CUSTOM option"
            )));
        }
        let Some((_, kind)) = OPTIONS.iter().find(|(name, _)| name == key) else {
            return Err(CqlError::invalid(format!(
                "Unsupported option {key} for vector index"
            )));
        };
        check_value(kind, value, dimensions).map_err(|reason| {
            CqlError::invalid(format!(
                "Invalid value in option '{key}' for vector index: {reason}"
            ))
        })?;
    }
    Ok(())
}

fn check_value(kind: &Kind, value: &str, dimensions: u16) -> Result<(), String> {
    match kind {
        Kind::Any => Ok(()),
        Kind::OneOf(names) => {
            if names.iter().any(|name| name.eq_ignore_ascii_case(value)) {
                Ok(())
            } else {
                Err(format!(
                    "'{value}'. Supported are case insensitive: {}",
                    names.join(", ")
                ))
            }
        }
        Kind::Integer { min, max } => {
            let number = integer(value)?;
            in_range(value, (*min..=*max).contains(&number), min, max)
        }
        Kind::Float { min, max } => {
            let number: f64 = value
                .parse()
                .map_err(|_| format!("'{value}' is not a float"))?;
            in_range(
                value,
                (*min..=*max).contains(&number),
                &format_args!("{min:?}"),
                &format_args!("{max:?}"),
            )
        }
        Kind::Dimensions => {
            if integer(value)? == i64::from(dimensions) {
                Ok(())
            } else {
                Err(format!(
                    "'{value}' differs from the {dimensions} dimensions of the column"
                ))
            }
        }
    }
}

fn integer(value: &str) -> Result<i64, String> {
    value
        .parse()
        .map_err(|_| format!("'{value}' is not an integer"))
}

fn in_range(
    value: &str,
    is_within: bool,
    min: &dyn std::fmt::Display,
    max: &dyn std::fmt::Display,
) -> Result<(), String> {
    if is_within {
        Ok(())
    } else {
        Err(format!("'{value}' is out of valid range [{min} - {max}]"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_one(key: &str, value: &str) -> Result<(), String> {
        check(&BTreeMap::from([(key.to_owned(), value.to_owned())]), 3)
            .map_err(|error| error.message)
    }

    #[test]
    fn values_within_their_bounds_are_taken() {
        for (key, value) in [
            ("similarity_function", "cosine"),
            ("similarity_function", "DOT_PRODUCT"),
            ("similarity_function", "Euclidean"),
            ("maximum_node_connections", "1"),
            ("maximum_node_connections", "512"),
            ("construction_beam_width", "4096"),
            ("search_beam_width", "1"),
            ("quantization", "BF16"),
            ("oversampling", "1"),
            ("oversampling", "100.0"),
            ("rescoring", "TRUE"),
            ("source_model", "anything, even nothing"),
            ("source_model", ""),
            ("dimensions", "3"),
        ] {
            assert_eq!(check_one(key, value), Ok(()), "{key} = {value}");
        }
    }

    #[test]
    #[expect(
        clippy::too_many_lines,
        reason = "one table: each wrong value with its message"
    )]
    fn wrong_values_are_explained() {
        let invalid = |key: &str, reason: &str| {
            format!("Invalid value in option '{key}' for vector index: {reason}")
        };
        for (key, value, reason) in [
            (
                "similarity_function",
                "manhattan",
                "'manhattan'. Supported are case insensitive: cosine, euclidean, dot_product",
            ),
            (
                "maximum_node_connections",
                "0",
                "'0' is out of valid range [1 - 512]",
            ),
            (
                "maximum_node_connections",
                "513",
                "'513' is out of valid range [1 - 512]",
            ),
            (
                "maximum_node_connections",
                "many",
                "'many' is not an integer",
            ),
            (
                "maximum_node_connections",
                "16.0",
                "'16.0' is not an integer",
            ),
            (
                "construction_beam_width",
                "4097",
                "'4097' is out of valid range [1 - 4096]",
            ),
            (
                "search_beam_width",
                "-1",
                "'-1' is out of valid range [1 - 4096]",
            ),
            (
                "quantization",
                "i4",
                "'i4'. Supported are case insensitive: f32, f16, bf16, i8, b1",
            ),
            ("oversampling", "0x10", "'0x10' is not a float"),
            ("oversampling", "  9  ", "'  9  ' is not a float"),
            (
                "oversampling",
                "0.9",
                "'0.9' is out of valid range [1.0 - 100.0]",
            ),
            (
                "oversampling",
                "100.1",
                "'100.1' is out of valid range [1.0 - 100.0]",
            ),
            (
                "oversampling",
                "NaN",
                "'NaN' is out of valid range [1.0 - 100.0]",
            ),
            ("oversampling", "much", "'much' is not a float"),
            (
                "rescoring",
                "yes",
                "'yes'. Supported are case insensitive: true, false",
            ),
            (
                "dimensions",
                "4",
                "'4' differs from the 3 dimensions of the column",
            ),
            ("dimensions", "x", "'x' is not an integer"),
        ] {
            assert_eq!(check_one(key, value), Err(invalid(key, reason)));
        }
    }

    #[test]
    fn unknown_and_reserved_names_are_refused() {
        assert_eq!(
            check_one("m", "16").unwrap_err(),
            "Unsupported option m for vector index"
        );
        assert_eq!(
            check_one("index_version", "1").unwrap_err(),
            "Cannot specify index_version as a CUSTOM option"
        );
    }
}
