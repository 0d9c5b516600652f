//! Properties after `WITH`: values by name, read as the types that they should have.

use std::collections::HashSet;

use cql::ast::OptionValue;
use cql::error::CqlError;

/// The error "Unknown property 'x'".
pub(super) fn unknown(name: &str) -> CqlError {
    CqlError::syntax(format!("Unknown property '{name}'"))
}

pub(super) fn scalar<'a>(name: &str, value: &'a OptionValue) -> Result<&'a str, CqlError> {
    match value {
        OptionValue::Scalar(text) => Ok(text),
        OptionValue::Map(_) => Err(CqlError::syntax(format!(
            "Invalid value for property '{name}'. It should be a string"
        ))),
    }
}

pub(super) fn map<'a>(
    name: &str,
    value: &'a OptionValue,
) -> Result<&'a [(String, String)], CqlError> {
    match value {
        OptionValue::Map(entries) => {
            let mut seen = HashSet::new();
            if let Some((key, _)) = entries.iter().find(|(key, _)| !seen.insert(key)) {
                return Err(CqlError::syntax(format!(
                    "Multiple definition for key '{key}' of property '{name}'"
                )));
            }
            Ok(entries)
        }
        OptionValue::Scalar(_) => Err(CqlError::syntax(format!(
            "Invalid value for property '{name}'. It should be a map"
        ))),
    }
}

/// Reads a boolean: `true`, `1`, `yes`, `false`, `0` or `no`, in any case.
pub(super) fn read_boolean(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" => Some(true),
        "false" | "0" | "no" => Some(false),
        _ => None,
    }
}

pub(super) fn boolean(name: &str, value: &OptionValue) -> Result<bool, CqlError> {
    let text = scalar(name, value)?;
    read_boolean(text)
        .ok_or_else(|| CqlError::syntax(format!("Invalid boolean value {text} for '{name}'")))
}

pub(super) fn integer(name: &str, value: &OptionValue) -> Result<i32, CqlError> {
    let text = scalar(name, value)?;
    text.parse()
        .map_err(|_| CqlError::syntax(format!("Invalid integer value {text} for '{name}'")))
}

pub(super) fn double(name: &str, value: &OptionValue) -> Result<f64, CqlError> {
    let text = scalar(name, value)?;
    text.parse()
        .ok()
        .filter(|number: &f64| number.is_finite())
        .ok_or_else(|| CqlError::syntax(format!("Invalid double value {text} for '{name}'")))
}

/// The text as a quoted CQL string.
pub(super) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// A map as CQL text.
pub(super) fn map_text(entries: &[(String, String)]) -> String {
    let entries: Vec<String> = entries
        .iter()
        .map(|(key, value)| format!("{}: {}", quoted(key), quoted(value)))
        .collect();
    format!("{{{}}}", entries.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_as_what_they_should_be() {
        let value = |text: &str| OptionValue::Scalar(text.to_owned());
        assert!(boolean("o", &value("TRUE")).unwrap());
        assert_eq!(
            boolean("o", &value("maybe")).unwrap_err().message,
            "Invalid boolean value maybe for 'o'"
        );
        assert_eq!(
            integer("o", &value("1.5")).unwrap_err().message,
            "Invalid integer value 1.5 for 'o'"
        );
        assert_eq!(
            double("o", &value("NaN")).unwrap_err().message,
            "Invalid double value NaN for 'o'"
        );
        assert_eq!(
            map("o", &value("x")).unwrap_err().message,
            "Invalid value for property 'o'. It should be a map"
        );
        let twice = vec![("k".to_owned(), String::new()); 2];
        assert_eq!(
            map("o", &OptionValue::Map(twice)).unwrap_err().message,
            "Multiple definition for key 'k' of property 'o'"
        );
    }

    #[test]
    fn quotes_are_doubled() {
        let entries = [("it's".to_owned(), "1".to_owned())];
        assert_eq!(map_text(&entries), "{'it''s': '1'}");
    }
}
