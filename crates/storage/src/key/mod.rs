//! The keys of partitions and rows in the engine.
//!
//! ```text
//! key        token, 8 bytes big-endian with the sign bit flipped
//!            partition key: for each column 01 if empty, else 02 and
//!              the value as it is, where every value of the type has one length;
//!              else each byte with 00 written as 00 FF, then 00 00
//!            kind, 1 byte
//!            suffix
//! kind       00  the partition itself: its deletion, its static cells; no suffix
//!            01  a range deletion; the suffix is its beginning
//!            02  a row; the suffix is its clustering columns (see `component`)
//! ```
//!
//! Two partition keys are the same if their bytes are; two clustering keys if they compare equal.

pub(crate) mod bits;
mod component;
mod number;
#[cfg(test)]
mod order_tests;
pub(crate) mod term;

use bits::ComponentReader;
use bytes::Bytes;
use component::{AFTER_PREFIX, EMPTY, PRESENT, encode_escaped};
use schema::{ColumnKind, Table};
use value::{
    CqlType,
    token::{Partitioner, Token, routing_key},
};

use crate::StorageError;
use crate::read::ClusteringBound;

/// The longest key that the engine takes, in bytes.
pub(crate) const KEY_BYTES_MAX: usize = 65_535;

pub(crate) const HEADER: u8 = 0;
pub(crate) const RANGE: u8 = 1;
pub(crate) const ROW: u8 = 2;

const TOKEN_BYTES: usize = 8;

/// Writes and reads the keys of a table.
#[derive(Debug)]
pub(crate) struct KeyCodec {
    partitioner: Partitioner,
    partition: Vec<CqlType>,
    clustering: Vec<(CqlType, bool)>,
    lossy: bool,
}

/// The parts of a key.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeyParts<'a> {
    /// Token and partition key.
    pub partition: &'a [u8],
    pub kind: u8,
    pub suffix: &'a [u8],
}

/// Rows with `low <= suffix < high`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SuffixRange {
    pub low: Vec<u8>,
    pub high: Vec<u8>,
}

impl SuffixRange {
    pub(crate) fn whole() -> SuffixRange {
        SuffixRange {
            low: Vec::new(),
            high: vec![AFTER_PREFIX],
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.low >= self.high
    }

    pub(crate) fn contains(&self, suffix: &[u8]) -> bool {
        self.low.as_slice() <= suffix && suffix < self.high.as_slice()
    }
}

impl KeyCodec {
    pub(crate) fn new(table: &Table) -> KeyCodec {
        let clustering: Vec<_> = table
            .clustering_key()
            .into_iter()
            .map(|column| {
                let descending = matches!(
                    column.kind,
                    ColumnKind::Clustering {
                        descending: true,
                        ..
                    }
                );
                (column.cql_type.clone(), descending)
            })
            .collect();
        KeyCodec {
            partitioner: table.partitioner,
            partition: table
                .partition_key()
                .into_iter()
                .map(|column| column.cql_type.clone())
                .collect(),
            lossy: clustering
                .iter()
                .any(|(cql_type, _)| component::is_lossy(cql_type)),
            clustering,
        }
    }

    pub(crate) fn has_clustering(&self) -> bool {
        !self.clustering.is_empty()
    }

    pub(crate) fn clustering_columns(&self) -> usize {
        self.clustering.len()
    }

    /// The token, and the bytes with which all keys of a partition begin: token and partition key.
    pub(crate) fn partition(&self, key: &[Bytes]) -> Result<(Token, Vec<u8>), StorageError> {
        if key.len() != self.partition.len() {
            return Err(StorageError::Invalid(format!(
                "the partition key has {} columns, got {} values",
                self.partition.len(),
                key.len()
            )));
        }
        check_length(key.iter().map(Bytes::len).sum::<usize>())?;
        let token = self.partitioner.token(&routing_key(key));
        let mut out = Vec::with_capacity(TOKEN_BYTES + 32);
        out.extend_from_slice(&token_bytes(token));
        for (value, cql_type) in key.iter().zip(&self.partition) {
            if value.is_empty() {
                out.push(EMPTY);
                continue;
            }
            out.push(PRESENT);
            match value_length(cql_type) {
                Some(length) if length == value.len() => out.extend_from_slice(value),
                Some(_) => return Err(wrong_value(cql_type)),
                None => encode_escaped(&mut out, value),
            }
        }
        check_length(out.len() + 1)?;
        Ok((token, out))
    }

    /// The suffix of a row, from the values of its clustering columns.
    pub(crate) fn clustering(&self, values: &[Bytes]) -> Result<Vec<u8>, StorageError> {
        if values.len() != self.clustering.len() {
            return Err(StorageError::Invalid(format!(
                "the clustering key has {} columns, got {} values",
                self.clustering.len(),
                values.len()
            )));
        }
        self.clustering_prefix(values)
    }

    fn clustering_prefix(&self, values: &[Bytes]) -> Result<Vec<u8>, StorageError> {
        if values.len() > self.clustering.len() {
            return Err(StorageError::Invalid(format!(
                "the clustering key has {} columns, got {} values",
                self.clustering.len(),
                values.len()
            )));
        }
        check_length(values.iter().map(Bytes::len).sum::<usize>())?;
        let mut out = Vec::with_capacity(32);
        for (value, (cql_type, descending)) in values.iter().zip(&self.clustering) {
            component::encode(&mut out, cql_type, *descending, value)
                .map_err(|_| wrong_value(cql_type))?;
        }
        Ok(out)
    }

    pub(crate) fn suffix_range(
        &self,
        start: &ClusteringBound,
        end: &ClusteringBound,
    ) -> Result<SuffixRange, StorageError> {
        let behind = |mut prefix: Vec<u8>| {
            prefix.push(AFTER_PREFIX);
            prefix
        };
        let low = match start {
            ClusteringBound::Unbounded => Vec::new(),
            ClusteringBound::Inclusive(values) => self.clustering_prefix(values)?,
            ClusteringBound::Exclusive(values) => behind(self.clustering_prefix(values)?),
        };
        let high = match end {
            ClusteringBound::Unbounded => vec![AFTER_PREFIX],
            ClusteringBound::Inclusive(values) => behind(self.clustering_prefix(values)?),
            ClusteringBound::Exclusive(values) => self.clustering_prefix(values)?,
        };
        Ok(SuffixRange { low, high })
    }

    /// The clustering values as given, if decoding the suffix does not give the same bytes; else
    /// `None`.
    pub(crate) fn original_clustering(
        &self,
        values: &[Bytes],
        suffix: &[u8],
    ) -> Option<Vec<Bytes>> {
        if !self.lossy || self.decode_clustering(suffix).as_deref() == Some(values) {
            return None;
        }
        Some(values.to_vec())
    }

    /// Splits a key into its parts; `None` if it is no key of this table.
    pub(crate) fn split<'a>(&self, key: &'a [u8]) -> Option<KeyParts<'a>> {
        let mut rest = key.get(TOKEN_BYTES..)?;
        for cql_type in &self.partition {
            skip_partition_column(&mut rest, cql_type)?;
        }
        let partition = &key[..key.len() - rest.len()];
        let (kind, suffix) = rest.split_first()?;
        Some(KeyParts {
            partition,
            kind: *kind,
            suffix,
        })
    }

    pub(crate) fn decode_partition(&self, partition: &[u8]) -> Option<(Token, Vec<Bytes>)> {
        let (token, mut rest) = partition.split_first_chunk::<TOKEN_BYTES>()?;
        let token = Token((u64::from_be_bytes(*token) ^ 1 << 63) as i64);
        let mut values = Vec::with_capacity(self.partition.len());
        for cql_type in &self.partition {
            values.push(take_partition_column(&mut rest, cql_type)?);
        }
        rest.is_empty().then_some((token, values))
    }

    pub(crate) fn decode_clustering(&self, suffix: &[u8]) -> Option<Vec<Bytes>> {
        let mut rest = suffix;
        let mut values = Vec::with_capacity(self.clustering.len());
        for (cql_type, descending) in &self.clustering {
            values.push(component::decode(&mut rest, cql_type, *descending)?);
        }
        rest.is_empty().then_some(values)
    }
}

/// The bytes with which all keys of a token begin.
pub(crate) fn token_bytes(token: Token) -> [u8; TOKEN_BYTES] {
    ((token.0 as u64) ^ 1 << 63).to_be_bytes()
}

/// A whole key. It is an error if the key is too long for the engine.
pub(crate) fn join(partition: &[u8], kind: u8, suffix: &[u8]) -> Result<Vec<u8>, StorageError> {
    let length = partition.len() + 1 + suffix.len();
    check_length(length)?;
    let mut key = Vec::with_capacity(length);
    key.extend_from_slice(partition);
    key.push(kind);
    key.extend_from_slice(suffix);
    Ok(key)
}

/// A bound of a scan. It may be a byte longer than a key, so its length is not checked.
pub(crate) fn bound(partition: &[u8], kind: u8, suffix: &[u8]) -> Vec<u8> {
    [partition, &[kind], suffix].concat()
}

fn check_length(length: usize) -> Result<(), StorageError> {
    if length > KEY_BYTES_MAX {
        return Err(StorageError::Invalid(format!(
            "the primary key takes {length} bytes in storage, more than the maximum of {KEY_BYTES_MAX}"
        )));
    }
    Ok(())
}

fn wrong_value(cql_type: &CqlType) -> StorageError {
    StorageError::Invalid(format!(
        "a key column of type {cql_type} got an invalid value"
    ))
}

/// The length of every non-empty value of the type; `None` if it varies.
fn value_length(cql_type: &CqlType) -> Option<usize> {
    match cql_type {
        CqlType::Tinyint => Some(1),
        CqlType::Smallint => Some(2),
        CqlType::Date => Some(4),
        CqlType::Time => Some(8),
        CqlType::Vector { .. } => None,
        other => other.fixed_length(),
    }
}

fn skip_partition_column(rest: &mut &[u8], cql_type: &CqlType) -> Option<()> {
    let (marker, behind) = rest.split_first()?;
    *rest = behind;
    match (*marker, value_length(cql_type)) {
        (EMPTY, _) => Some(()),
        (PRESENT, Some(length)) => {
            *rest = rest.get(length..)?;
            Some(())
        }
        (PRESENT, None) => loop {
            let zero = rest.iter().position(|byte| *byte == 0)?;
            let escape = *rest.get(zero + 1)?;
            *rest = &rest[zero + 2..];
            match escape {
                0 => return Some(()),
                0xff => {}
                _ => return None,
            }
        },
        _ => None,
    }
}

fn take_partition_column(rest: &mut &[u8], cql_type: &CqlType) -> Option<Bytes> {
    let mut reader = ComponentReader { rest, mask: 0 };
    let value = match (reader.byte()?, value_length(cql_type)) {
        (EMPTY, _) => Bytes::new(),
        (PRESENT, Some(length)) => reader.bytes(length)?.into(),
        (PRESENT, None) => reader.escaped()?,
        _ => return None,
    };
    *rest = reader.rest;
    Some(value)
}
