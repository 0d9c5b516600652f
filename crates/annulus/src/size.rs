//! Numbers of bytes in settings.

use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// A number of bytes: `4000000000`, `4GiB`, `512 MiB`, `4GB`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ByteSize(pub u64);

impl<'de> Deserialize<'de> for ByteSize {
    /// Reads a text, or a number of bytes.
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ByteSize, D::Error> {
        #[derive(Deserialize)]
        #[serde(untagged)]
        enum NumberOrText {
            Bytes(u64),
            Text(String),
        }
        match NumberOrText::deserialize(deserializer)? {
            NumberOrText::Bytes(bytes) => Ok(ByteSize(bytes)),
            NumberOrText::Text(text) => text.parse().map_err(serde::de::Error::custom),
        }
    }
}

impl FromStr for ByteSize {
    type Err = String;

    fn from_str(text: &str) -> Result<ByteSize, String> {
        let text = text.trim();
        let digits = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        let (number, unit) = text.split_at(digits);
        let factor: u64 = match unit.trim().to_ascii_lowercase().as_str() {
            "" | "b" => 1,
            "kb" => 1000,
            "mb" => 1000_u64.pow(2),
            "gb" => 1000_u64.pow(3),
            "kib" | "k" => 1 << 10,
            "mib" | "m" => 1 << 20,
            "gib" | "g" => 1 << 30,
            _ => return Err("write bytes as a number, or with KiB, MiB, GiB, as 4GiB".to_owned()),
        };
        number
            .parse::<u64>()
            .ok()
            .and_then(|number| number.checked_mul(factor))
            .map(ByteSize)
            .ok_or_else(|| "not a number of bytes; write for example 4GiB".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_bytes_unless_a_unit_says_otherwise() {
        let parsed = |text: &str| text.parse::<ByteSize>().map(|size| size.0);
        assert_eq!(parsed("4000000000"), Ok(4_000_000_000));
        assert_eq!(parsed("4GiB"), Ok(4 << 30));
        assert_eq!(parsed("512 MiB"), Ok(512 << 20));
        assert_eq!(parsed("2gb"), Ok(2_000_000_000));
        for text in ["", "GiB", "1.5GiB", "4TB", "-1", "99999999999GiB"] {
            assert!(parsed(text).is_err(), "{text}");
        }
    }
}
