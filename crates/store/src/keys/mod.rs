//! Primary keys: their encoding, their identity and their form in answers.
//!
//! The index answers with primary keys, so it keeps one for every row. A key is one block of bytes.
//! For each column, partition key first, it has the length of the value as LEB128, and then the
//! value as the database serialises it. So the encoding of the partition key's columns is a prefix
//! of the key's.
//!
//! The columns are here a [`KeySchema`] and no `schema::Table`, as the index service next to a
//! cluster knows no more of a table than its key and the columns that it observes.

mod lookup;
mod place;
mod table;
mod token;

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::hash::{Hash, Hasher};

use value::{CqlType, clustering_form, to_key_json};

pub(crate) use place::RowPlace;
pub(crate) use table::KeyTable;
pub(crate) use token::token;

/// A column of the primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyColumn {
    /// The column's name, case preserved.
    pub name: String,
    /// The type of the column; see [`is_key_type`].
    pub cql_type: CqlType,
}

/// Whether keys of that type can be indexed. They can if the type has a JSON form (contract,
/// section 1.8).
pub fn is_key_type(cql_type: &CqlType) -> bool {
    index::target::is_scalar(cql_type)
}

/// The columns of a table's primary key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeySchema {
    /// The columns of the partition key, at least one.
    pub partition: Vec<KeyColumn>,
    /// The clustering columns; none for tables with one row a partition.
    pub clustering: Vec<KeyColumn>,
}

/// The primary key of a row, with the form in which its values are stored. Keys of the same row are
/// equal, whatever their form.
#[derive(Clone, Debug)]
pub struct PrimaryKey {
    encoded: Box<[u8]>,
    /// The encoded key with the values as they are stored, if answers would otherwise show other
    /// values.
    stored: Option<Box<[u8]>>,
}

impl PartialEq for PrimaryKey {
    fn eq(&self, other: &PrimaryKey) -> bool {
        self.encoded == other.encoded
    }
}

impl Eq for PrimaryKey {}

impl Hash for PrimaryKey {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.encoded.hash(state);
    }
}

impl PartialOrd for PrimaryKey {
    fn partial_cmp(&self, other: &PrimaryKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for PrimaryKey {
    fn cmp(&self, other: &PrimaryKey) -> Ordering {
        self.encoded.cmp(&other.encoded)
    }
}

/// The partition key of a partition.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PartitionKey(Box<[u8]>);

impl KeySchema {
    /// Every column, partition key first.
    pub fn columns(&self) -> impl Iterator<Item = &KeyColumn> {
        self.partition.iter().chain(&self.clustering)
    }

    /// The number of all columns.
    #[expect(
        clippy::len_without_is_empty,
        reason = "a primary key has at least one column"
    )]
    pub fn len(&self) -> usize {
        self.partition.len() + self.clustering.len()
    }

    /// Whether a partition may hold several rows.
    pub fn has_clustering(&self) -> bool {
        !self.clustering.is_empty()
    }

    /// Makes a key of serialised values, one for each column.
    ///
    /// Values of a partition key are the same if their bytes are. A clustering column compares by
    /// value, and a number may have several serialised forms: that in the log may differ from that
    /// in the row. So clustering values take a normal form here. A decimal's scale, which answers
    /// show, is stored next to it.
    pub fn encode<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>) -> PrimaryKey {
        let mut out = Vec::new();
        let mut stored: Option<Vec<u8>> = None;
        for (at, (column, value)) in self.columns().zip(values).enumerate() {
            if at < self.partition.len() {
                push(&mut out, value);
                continue;
            }
            let normal = clustering_form(&column.cql_type, value);
            if column.cql_type == CqlType::Decimal && *normal != *value {
                stored.get_or_insert_with(|| out.clone());
            }
            push(&mut out, &normal);
            if let Some(stored) = &mut stored {
                push(stored, value);
            }
        }
        PrimaryKey {
            encoded: out.into(),
            stored: stored.map(Vec::into_boxed_slice),
        }
    }

    /// Reads a key of a snapshot, which is encoded in the form of its stored values; `None` if the
    /// bytes are no key.
    pub(crate) fn saved_key(&self, bytes: &[u8]) -> Option<PrimaryKey> {
        if !self.is_key(bytes) {
            return None;
        }
        let is_decimal = |column: &KeyColumn| column.cql_type == CqlType::Decimal;
        Some(match self.clustering.iter().any(is_decimal) {
            true => self.encode(EncodedValues::of(bytes)),
            false => PrimaryKey::from_encoded(bytes),
        })
    }

    /// Makes a partition key of serialised values, one for each partition key column.
    pub fn encode_partition<'a>(&self, values: impl IntoIterator<Item = &'a [u8]>) -> PartitionKey {
        let mut out = Vec::new();
        for (_, value) in self.partition.iter().zip(values) {
            push(&mut out, value);
        }
        PartitionKey(out.into())
    }

    /// Writes a key for people: a JSON array, with bytes in place of values that JSON can't show.
    pub fn show(&self, key: &PrimaryKey) -> String {
        let values: Vec<String> = self
            .columns()
            .zip(key.values())
            .map(|(column, value)| {
                let shown = to_key_json(&column.cql_type, value).ok();
                shown
                    .and_then(|shown| serde_json::to_string(&shown).ok())
                    .unwrap_or_else(|| format!("{value:02x?}"))
            })
            .collect();
        format!("[{}]", values.join(", "))
    }

    /// Whether these bytes are an encoded key of these columns.
    pub fn is_key(&self, encoded: &[u8]) -> bool {
        let mut rest = encoded;
        for _ in 0..self.len() {
            let Some(after) = skip_value(rest) else {
                return false;
            };
            rest = after;
        }
        rest.is_empty()
    }

    /// Whether all values of an encoded key have a form in JSON.
    pub(crate) fn has_json(&self, encoded: &[u8]) -> bool {
        let values = self.columns().zip(EncodedValues::of(encoded));
        let mut shown = values.map(|(column, value)| to_key_json(&column.cql_type, value));
        shown.all(|shown| shown.is_ok())
    }

    /// The encoded key of the partition of a row.
    pub fn partition_of<'a>(&self, key: &'a [u8]) -> &'a [u8] {
        prefix(key, self.partition.len())
    }
}

impl PrimaryKey {
    /// The encoded key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.encoded
    }

    /// The serialised values, those of the partition key first.
    pub fn values(&self) -> EncodedValues<'_> {
        EncodedValues(&self.encoded)
    }

    /// Makes a key of its encoding.
    pub(crate) fn from_encoded(bytes: &[u8]) -> PrimaryKey {
        PrimaryKey {
            encoded: bytes.into(),
            stored: None,
        }
    }

    pub(crate) fn into_bytes(self) -> Box<[u8]> {
        self.encoded
    }
}

impl PartitionKey {
    /// The encoded key.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The serialised values.
    pub fn values(&self) -> EncodedValues<'_> {
        EncodedValues(&self.0)
    }
}

impl Borrow<[u8]> for PartitionKey {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// The serialised values of an encoded key.
#[derive(Clone, Debug)]
pub struct EncodedValues<'a>(&'a [u8]);

impl<'a> EncodedValues<'a> {
    pub(crate) fn of(encoded: &'a [u8]) -> EncodedValues<'a> {
        EncodedValues(encoded)
    }
}

impl<'a> Iterator for EncodedValues<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.0.is_empty() {
            return None;
        }
        let (length, rest) = pull_length(self.0);
        let (value, rest) = rest.split_at(length);
        self.0 = rest;
        Some(value)
    }
}

/// The encoding of the first `columns` columns.
fn prefix(encoded: &[u8], columns: usize) -> &[u8] {
    let mut rest = encoded;
    for _ in 0..columns {
        let (length, after) = pull_length(rest);
        rest = &after[length..];
    }
    &encoded[..encoded.len() - rest.len()]
}

fn push(out: &mut Vec<u8>, value: &[u8]) {
    let mut length = value.len();
    while length >= 0x80 {
        out.push((length & 0x7f) as u8 | 0x80);
        length >>= 7;
    }
    out.push(length as u8);
    out.extend_from_slice(value);
}

/// The bytes after the first value, if there is a whole one.
fn skip_value(bytes: &[u8]) -> Option<&[u8]> {
    let ends = bytes.iter().take(5).position(|byte| byte & 0x80 == 0)?;
    let (length, rest) = pull_length(&bytes[..=ends]);
    debug_assert!(rest.is_empty());
    bytes[ends + 1..].get(length..)
}

/// Takes a length off the front. Panics if it is not whole: keys are encoded only in this module,
/// and are checked when they come from a file, so that would be a bug.
fn pull_length(bytes: &[u8]) -> (usize, &[u8]) {
    let mut length = 0;
    for (at, byte) in bytes.iter().enumerate() {
        length |= usize::from(byte & 0x7f) << (7 * at);
        if byte & 0x80 == 0 {
            return (length, &bytes[at + 1..]);
        }
    }
    panic!("an encoded key ends within a length");
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A schema of text columns.
    pub(crate) fn text_schema(partition: usize, clustering: usize) -> KeySchema {
        let column = |name: String| KeyColumn {
            name,
            cql_type: CqlType::Text,
        };
        KeySchema {
            partition: (0..partition).map(|i| column(format!("p{i}"))).collect(),
            clustering: (0..clustering).map(|i| column(format!("c{i}"))).collect(),
        }
    }

    proptest! {
        #[test]
        fn values_come_back(values in proptest::collection::vec(
            proptest::collection::vec(any::<u8>(), 0..300), 1..5)) {
            let schema = text_schema(1, values.len() - 1);
            let key = schema.encode(values.iter().map(Vec::as_slice));
            let back: Vec<Vec<u8>> = key.values().map(<[u8]>::to_vec).collect();
            prop_assert_eq!(&back, &values);
            let partition = schema.encode_partition([values[0].as_slice()]);
            prop_assert_eq!(schema.partition_of(key.as_bytes()), partition.as_bytes());
        }
    }

    #[test]
    fn bytes_that_are_no_key_are_told_from_keys() {
        let schema = text_schema(1, 1);
        let key = schema.encode([[b'x'; 200].as_slice(), b""]);
        let key = key.as_bytes();
        assert!(schema.is_key(key));
        for length in 0..key.len() {
            assert!(!schema.is_key(&key[..length]), "{length} bytes");
        }
        assert!(!schema.is_key(&[key, &[0]].concat()));
        assert!(!schema.is_key(&[0xff; 40]));
        assert!(!text_schema(1, 0).is_key(key));
    }

    #[test]
    fn keys_are_shown_to_people() {
        let mut schema = text_schema(1, 1);
        let key = schema.encode([b"a".as_slice(), b"\xff"]);
        assert_eq!(schema.show(&key), r#"["a", [ff]]"#);
        schema.clustering[0].cql_type = CqlType::Blob;
        assert_eq!(schema.show(&key), r#"["a", "0xff"]"#);
    }

    #[test]
    fn clustering_numbers_are_one_key_in_any_form() {
        let schema = KeySchema {
            partition: vec![KeyColumn {
                name: "p".into(),
                cql_type: CqlType::Decimal,
            }],
            clustering: vec![KeyColumn {
                name: "c".into(),
                cql_type: CqlType::Decimal,
            }],
        };
        // The numbers are 1.0 and 1.00, each as the scale and the unscaled number.
        let short: &[u8] = &[0, 0, 0, 1, 10];
        let long: &[u8] = &[0, 0, 0, 2, 100];
        assert_eq!(schema.encode([short, short]), schema.encode([short, long]));
        assert_ne!(schema.encode([short, short]), schema.encode([long, short]));
        // The form that was inserted is the one that is shown and saved.
        let mut table = KeyTable::new(Some(1));
        for (form, id) in [(short, 0), (long, 1)] {
            let key = schema.encode([short, form]);
            table.insert(id, key.clone());
            assert_eq!(table.id(schema.encode([short, long]).as_bytes()), Some(id));
            let saved = table.shown(id).unwrap().to_vec();
            assert_eq!(EncodedValues::of(&saved).collect::<Vec<_>>(), [short, form]);
            assert_eq!(table.encoded_bytes(), saved.len());
            assert!(!table.keep_form(id, &key));
            assert!(table.keep_form(id, &schema.encode([short, &[0, 0, 0, 3, 3, 232]])));
            assert_eq!(table.encoded_bytes(), saved.len() + 1);
            assert!(table.keep_form(id, &key));
            assert_eq!(table.remove(id), Some(key));
            assert_eq!((table.encoded_bytes(), table.shown(id)), (0, None));
            let back = schema.saved_key(&saved).unwrap();
            table.insert(id, back);
            assert_eq!(table.shown(id), Some(saved.as_slice()));
            table.remove(id);
        }
        assert_eq!(schema.saved_key(b"\x05"), None);
    }
}
