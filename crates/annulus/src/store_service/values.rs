//! The forms of values in settings.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// A JSON object from addresses that nodes report to those at which they are reached.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq)]
#[serde(try_from = "String")]
pub struct AddressTranslations(pub HashMap<SocketAddr, SocketAddr>);

impl FromStr for AddressTranslations {
    type Err = String;

    fn from_str(text: &str) -> Result<AddressTranslations, String> {
        serde_json::from_str(text)
            .map(AddressTranslations)
            .map_err(|error| {
                format!(r#"{error} (write for example {{"10.0.0.1:9042": "192.0.2.1:9042"}})"#)
            })
    }
}

impl TryFrom<String> for AddressTranslations {
    type Error = String;

    fn try_from(text: String) -> Result<AddressTranslations, String> {
        text.parse()
    }
}

/// Reads values with commas between them from a line of a file, where they may also be a list.
pub fn text_or_list<'de, D>(deserializer: D) -> Result<Option<String>, D::Error>
where
    D: Deserializer<'de>,
{
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        Text(String),
        List(Vec<String>),
    }
    Ok(Some(match Written::deserialize(deserializer)? {
        Written::Text(text) => text,
        Written::List(values) => values.join(","),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_mapped_one_by_one() {
        let map: AddressTranslations = r#"{"10.0.0.1:9042": "192.0.2.1:19042"}"#.parse().unwrap();
        let expected = HashMap::from([(
            "10.0.0.1:9042".parse().unwrap(),
            "192.0.2.1:19042".parse().unwrap(),
        )]);
        assert_eq!(map.0, expected);
        let error = r#"{"here": "there"}"#.parse::<AddressTranslations>().unwrap_err();
        assert!(error.contains("write for example"), "{error}");
    }
}
