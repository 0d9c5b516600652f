//! Functions that mask values: by null, by a value that reveals nothing, or by other characters.

use std::net::{IpAddr, Ipv4Addr};

use bigdecimal::BigDecimal;
use bytes::Bytes;
use cql::error::CqlError;
use num_bigint::BigInt;
use uuid::Uuid;
use value::{CqlType, Value};

use super::hash;

/// The character that replaces others.
const PADDING: char = '*';

/// The text that replaces others.
const MASKED_TEXT: &str = "****";

/// The serialised day of 1970-01-01.
const EPOCH_DAY: u32 = 1 << 31;

/// The first timeuuid of 1970.
const FIRST_TIMEUUID: Uuid = Uuid::from_u128(0x1381_4000_1dd2_11b2_8080_8080_8080_8080);

/// A function that masks its first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum DataMask {
    /// By null.
    Null,
    /// By the same value for all of a type.
    Default,
    /// By the second argument.
    Replace,
    /// All characters of a text but so many at its beginning and at its end.
    Inner,
    /// So many characters at the beginning and at the end of a text.
    Outer,
    /// By a hash of the value, which the second argument names.
    Hash,
}

/// All such functions, by their names.
const MASKS: [(&str, DataMask); 6] = [
    ("mask_null", DataMask::Null),
    ("mask_default", DataMask::Default),
    ("mask_replace", DataMask::Replace),
    ("mask_inner", DataMask::Inner),
    ("mask_outer", DataMask::Outer),
    ("mask_hash", DataMask::Hash),
];

impl DataMask {
    /// The function and its name.
    pub(super) fn by_name(name: &str) -> Option<(&'static str, DataMask)> {
        MASKS.into_iter().find(|(known, _)| *known == name)
    }

    /// The parameters, in the words of Cassandra's messages.
    pub(super) fn parameters(self) -> &'static str {
        match self {
            DataMask::Null | DataMask::Default => "any",
            DataMask::Replace => "any, any",
            DataMask::Hash => "any, [text]",
            DataMask::Inner | DataMask::Outer => "[text|varchar|ascii], int, int, [text]",
        }
    }

    /// The types of all arguments, given that of the first and their count; `None` if the function
    /// does not take so many.
    pub(super) fn argument_types(self, masked: &CqlType, count: usize) -> Option<Vec<CqlType>> {
        let mut types = vec![masked.clone()];
        match (self, count) {
            (DataMask::Null | DataMask::Default | DataMask::Hash, 1) => {}
            (DataMask::Hash, 2) => types.push(CqlType::Text),
            (DataMask::Replace, 2) => types.push(masked.clone()),
            (DataMask::Inner | DataMask::Outer, 3) => types.extend([CqlType::Int, CqlType::Int]),
            (DataMask::Inner | DataMask::Outer, 4) => {
                types.extend([CqlType::Int, CqlType::Int, CqlType::Text]);
            }
            _ => return None,
        }
        Some(types)
    }

    /// Checks an argument that is written out as a string. A statement with a wrong one is refused
    /// even if it reads nothing.
    ///
    /// # Errors
    /// A padding that is not one character, and an unknown hash.
    pub(super) fn check(self, at: usize, text: &str) -> Result<(), CqlError> {
        match (self, at) {
            (DataMask::Hash, 1) => hash::check(text),
            (DataMask::Inner | DataMask::Outer, 3) => self.padding(text).map(drop),
            _ => Ok(()),
        }
    }

    /// Masks a value of the type; `None` for null.
    ///
    /// # Errors
    /// A padding that is not one character, and an unknown hash.
    pub(super) fn evaluate(
        self,
        cql_type: &CqlType,
        arguments: &[Option<Bytes>],
    ) -> Result<Option<Bytes>, CqlError> {
        match self {
            DataMask::Null => Ok(None),
            DataMask::Default => Ok(default_value(cql_type).map(|value| value.serialize())),
            DataMask::Replace => Ok(arguments.get(1).cloned().flatten()),
            DataMask::Inner | DataMask::Outer => self.text(arguments),
            DataMask::Hash => {
                let argument = |at: usize| arguments.get(at).and_then(Option::as_deref);
                let algorithm = argument(1).map(String::from_utf8_lossy);
                let hashed = argument(0).map(|value| hash::hash(value, algorithm.as_deref()));
                hashed.transpose()
            }
        }
    }

    /// The type of what is left of a value of the type.
    pub(super) fn result_type(self, masked: CqlType) -> CqlType {
        match self {
            DataMask::Hash => CqlType::Blob,
            _ => masked,
        }
    }

    fn text(self, arguments: &[Option<Bytes>]) -> Result<Option<Bytes>, CqlError> {
        let argument = |at: usize| arguments.get(at).and_then(Option::as_ref);
        let Some(text) = argument(0) else {
            return Ok(None);
        };
        let kept = |at: usize| {
            let number = argument(at).and_then(|bytes| <[u8; 4]>::try_from(&bytes[..]).ok());
            let number = number.map_or(0, i32::from_be_bytes);
            usize::try_from(number).unwrap_or(0)
        };
        let padding = match argument(3) {
            None => PADDING,
            Some(bytes) => self.padding(&String::from_utf8_lossy(bytes))?,
        };
        let text = String::from_utf8_lossy(text);
        let count = text.chars().count();
        let (begin, end) = (kept(1), count.saturating_sub(kept(2)));
        let masked = text.chars().enumerate().map(|(at, character)| {
            let is_inner = at >= begin && at < end;
            match is_inner == (self == DataMask::Inner) {
                true => padding,
                false => character,
            }
        });
        Ok(Some(masked.collect::<String>().into()))
    }

    fn padding(self, text: &str) -> Result<char, CqlError> {
        let mut characters = text.chars();
        match (characters.next(), characters.next()) {
            (Some(only), None) => Ok(only),
            _ => {
                let name = MASKS.iter().find(|(_, mask)| *mask == self);
                Err(CqlError::invalid(format!(
                    "The padding argument for function system.{} should be single-character, but \
                     '{text}' has {} characters.",
                    name.map_or("mask", |(name, _)| name),
                    text.chars().count()
                )))
            }
        }
    }
}

/// The value that reveals nothing but its type; `None` if there is none.
fn default_value(cql_type: &CqlType) -> Option<Value> {
    Some(match cql_type {
        CqlType::Ascii => Value::Ascii(MASKED_TEXT.to_owned()),
        CqlType::Text => Value::Text(MASKED_TEXT.to_owned()),
        CqlType::Bigint => Value::Bigint(0),
        CqlType::Blob => Value::Blob(Bytes::new()),
        CqlType::Boolean => Value::Boolean(false),
        CqlType::Counter => Value::Counter(0),
        CqlType::Date => Value::Date(EPOCH_DAY),
        CqlType::Decimal => Value::Decimal(BigDecimal::from(0)),
        CqlType::Double => Value::Double(0.0),
        CqlType::Duration => Value::Duration {
            months: 0,
            days: 0,
            nanoseconds: 0,
        },
        CqlType::Float => Value::Float(0.0),
        CqlType::Inet => Value::Inet(IpAddr::V4(Ipv4Addr::UNSPECIFIED)),
        CqlType::Int => Value::Int(0),
        CqlType::Smallint => Value::Smallint(0),
        CqlType::Time => Value::Time(0),
        CqlType::Timestamp => Value::Timestamp(0),
        CqlType::Timeuuid => Value::Timeuuid(FIRST_TIMEUUID),
        CqlType::Tinyint => Value::Tinyint(0),
        CqlType::Uuid => Value::Uuid(Uuid::nil()),
        CqlType::Varint => Value::Varint(BigInt::ZERO),
        CqlType::List { .. } => Value::List(Vec::new()),
        CqlType::Set { .. } => Value::Set(Vec::new()),
        CqlType::Map { .. } => Value::Map(Vec::new()),
        CqlType::Tuple(types) => Value::Tuple(types.iter().map(default_value).collect()),
        CqlType::UserType { definition, .. } => Value::UserType {
            definition: definition.clone(),
            fields: definition.field_types.iter().map(default_value).collect(),
        },
        CqlType::Vector {
            element,
            dimensions,
        } => match **element {
            CqlType::Float => Value::FloatVector(vec![0.0; usize::from(*dimensions)]),
            _ => Value::Vector(vec![default_value(element)?; usize::from(*dimensions)]),
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(mask: DataMask, text: &str, begin: Option<i32>, end: Option<i32>) -> String {
        let number = |number: i32| Bytes::copy_from_slice(&number.to_be_bytes());
        let arguments = [
            Some(Bytes::copy_from_slice(text.as_bytes())),
            begin.map(number),
            end.map(number),
        ];
        let masked = mask.evaluate(&CqlType::Text, &arguments).unwrap().unwrap();
        String::from_utf8(masked.to_vec()).unwrap()
    }

    #[test]
    fn characters_are_masked_within_or_around() {
        assert_eq!(
            masked(DataMask::Inner, "abcdef", Some(1), Some(2)),
            "a***ef"
        );
        assert_eq!(masked(DataMask::Inner, "äöü", None, Some(1)), "**ü");
        assert_eq!(masked(DataMask::Inner, "abc", Some(-1), Some(9)), "abc");
        assert_eq!(
            masked(DataMask::Outer, "abcdef", Some(1), Some(2)),
            "*bcd**"
        );
        assert_eq!(masked(DataMask::Outer, "abc", Some(9), Some(9)), "***");
        assert_eq!(masked(DataMask::Outer, "abc", None, None), "abc");
    }

    #[test]
    fn defaults_are_values_of_their_types() {
        let tuple = CqlType::Tuple(vec![CqlType::Int, CqlType::Text]);
        let bytes = DataMask::Default
            .evaluate(&tuple, &[None])
            .unwrap()
            .unwrap();
        assert_eq!(
            Value::deserialize(&tuple, &bytes).unwrap(),
            Value::Tuple(vec![
                Some(Value::Int(0)),
                Some(Value::Text(MASKED_TEXT.to_owned()))
            ])
        );
    }
}
