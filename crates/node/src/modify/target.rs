//! The target of a write: the partitions and rows that its `WHERE` clause or its key columns name.

use bytes::Bytes;
use cql::error::CqlError;
use query::bind::{PreparedInList, PreparedTerm, StatementClock, TermValue};
use schema::{Column, Table};
use storage::read::ClusteringSlice;
use value::token::routing_key;

use crate::select::slices::{SliceBound, slices_between};
use crate::statement::BoundValue;

/// The most keys that one statement may write to. `IN` lists of several columns multiply, so their
/// product grows out of all proportion.
pub(super) const MAX_KEYS: usize = 10_000;

/// The longest serialised partition key, in bytes. Its length is written in two bytes.
const MAX_PARTITION_KEY_BYTES: usize = u16::MAX as usize;

/// The restrictions of the key columns.
#[derive(Debug, Default)]
pub(super) struct WriteTarget {
    /// One part for each partition key column, in the order of the key.
    pub partition: Vec<KeyPart>,
    /// The parts for the first clustering columns, without a gap, in the order of the key.
    pub clustering: Vec<KeyPart>,
    /// The bounds on the columns after those of `clustering`, if there are any.
    pub slice: Option<SlicePlan>,
}

/// The values of one key column, or of several taken together: `(a, b) IN ((1, 2), (3, 4))`.
#[derive(Debug)]
pub(super) struct KeyPart {
    /// The names of the columns; a tuple may have several.
    pub columns: Vec<String>,
    /// The values of the columns.
    pub values: KeyValues,
    /// Whether each value is a tuple with a field for each column. A tuple may have one field.
    pub is_tuple: bool,
}

#[derive(Debug)]
/// The values that a key part is restricted to.
pub(super) enum KeyValues {
    /// The value of an equality.
    One(PreparedTerm),
    /// The values of an IN.
    Many(PreparedInList),
}

/// Bounds on successive clustering columns.
#[derive(Debug, Default)]
pub(super) struct SlicePlan {
    /// The bound by `>` or `>=`.
    pub lower: Option<EdgePlan>,
    /// The bound by `<` or `<=`.
    pub upper: Option<EdgePlan>,
}

#[derive(Debug)]
/// One bound on successive clustering columns.
pub(super) struct EdgePlan {
    /// The names of the columns; a tuple may have several.
    pub columns: Vec<String>,
    /// The value of the bound.
    pub term: PreparedTerm,
    /// Whether the value is a tuple with a field for each column. A tuple may have one field.
    pub is_tuple: bool,
    /// Whether rows with this very value are within the bound.
    pub inclusive: bool,
}

/// The rows of each partition that a statement writes to.
#[derive(Debug, PartialEq)]
pub(super) enum WriteExtent {
    /// The partition as a whole.
    Partition,
    /// Rows with these whole clustering keys, as serialised values of the columns.
    Rows(Vec<Vec<Bytes>>),
    /// The rows in these slices.
    Ranges(Vec<ClusteringSlice>),
}

impl KeyPart {
    /// Makes the part for a single column that equals a term.
    pub fn one(column: &str, term: PreparedTerm) -> Self {
        KeyPart {
            columns: vec![column.to_owned()],
            values: KeyValues::One(term),
            is_tuple: false,
        }
    }

    /// The index of the bind marker, if the part is one column that equals one marker.
    fn marker(&self) -> Option<u16> {
        match &self.values {
            KeyValues::One(term) if !self.is_tuple => term.marker(),
            _ => None,
        }
    }

    /// The values of the columns, without repeats. Each has one entry for each column.
    fn evaluate(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Vec<Vec<Bytes>>, CqlError> {
        let bound = match &self.values {
            KeyValues::One(term) => vec![term.evaluate(values, clock)?],
            KeyValues::Many(list) => list.evaluate(values, clock)?,
        };
        let mut values: Vec<Vec<Bytes>> = bound
            .into_iter()
            .map(|bound| components(bound, &self.columns, self.is_tuple))
            .collect::<Result<_, _>>()?;
        if values.len() > 1 {
            values.sort();
            values.dedup();
        }
        Ok(values)
    }
}

impl WriteTarget {
    /// The indexes of the bind markers that give the partition key, in the order of the key. Empty
    /// if a key column has another value than a single marker.
    pub fn partition_key_variables(&self) -> Vec<u16> {
        self.partition
            .iter()
            .map(KeyPart::marker)
            .collect::<Option<_>>()
            .unwrap_or_default()
    }

    /// Whether the target names rows by all columns of their keys.
    pub fn is_of_whole_keys(&self, table: &Table) -> bool {
        let restricted: usize = self.clustering.iter().map(|part| part.columns.len()).sum();
        self.slice.is_none() && restricted == table.clustering_key().len()
    }

    /// The partition keys, without repeats, as serialised values of the partition key columns.
    ///
    /// # Errors
    /// Values that don't fit, null and unset values, empty and too long keys, and too many keys.
    pub fn partition_keys(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Vec<Vec<Bytes>>, CqlError> {
        let keys = product(&self.partition, values, clock)?;
        for key in &keys {
            check_partition_key(key)?;
        }
        Ok(keys)
    }

    /// The rows of each partition that the statement writes to.
    ///
    /// # Errors
    /// Values that don't fit, null and unset values, and too many keys.
    pub fn extent(
        &self,
        table: &Table,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<WriteExtent, CqlError> {
        let clustering = table.clustering_key();
        let prefixes = product(&self.clustering, values, clock)?;
        prefixes
            .iter()
            .try_for_each(|prefix| check_components(prefix))?;
        let prefix_length: usize = self.clustering.iter().map(|part| part.columns.len()).sum();
        match &self.slice {
            None if prefix_length == clustering.len() => Ok(WriteExtent::Rows(prefixes)),
            None if prefix_length == 0 => Ok(WriteExtent::Partition),
            None => Ok(WriteExtent::Ranges(
                prefixes
                    .iter()
                    .flat_map(|prefix| slices_between(&clustering, prefix, None, None))
                    .collect(),
            )),
            Some(slice) => slice.ranges(&clustering, &prefixes, values, clock),
        }
    }
}

impl SlicePlan {
    fn ranges(
        &self,
        clustering: &[&Column],
        prefixes: &[Vec<Bytes>],
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<WriteExtent, CqlError> {
        let evaluate = |edge: &Option<EdgePlan>| {
            edge.as_ref()
                .map(|edge| edge.evaluate(values, clock))
                .transpose()
        };
        let (lower, upper) = (evaluate(&self.lower)?, evaluate(&self.upper)?);
        Ok(WriteExtent::Ranges(
            prefixes
                .iter()
                .flat_map(|prefix| {
                    slices_between(
                        clustering,
                        prefix,
                        as_edge(lower.as_ref()),
                        as_edge(upper.as_ref()),
                    )
                })
                .collect(),
        ))
    }
}

impl EdgePlan {
    /// The values of the columns, and whether the edge is inclusive.
    fn evaluate(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<(Vec<Bytes>, bool), CqlError> {
        let bound = self.term.evaluate(values, clock)?;
        let values = components(bound, &self.columns, self.is_tuple)?;
        Ok((values, self.inclusive))
    }
}

fn as_edge(owned: Option<&(Vec<Bytes>, bool)>) -> Option<SliceBound<'_>> {
    owned.map(|(values, inclusive)| SliceBound {
        values,
        inclusive: *inclusive,
    })
}

/// All combinations of the parts' values, each in the order of the columns.
fn product(
    parts: &[KeyPart],
    values: &[BoundValue],
    clock: &StatementClock,
) -> Result<Vec<Vec<Bytes>>, CqlError> {
    let mut keys = vec![Vec::new()];
    for part in parts {
        let values = part.evaluate(values, clock)?;
        let count = keys.len().saturating_mul(values.len());
        if count > MAX_KEYS {
            return Err(too_many_keys(count));
        }
        keys = keys
            .iter()
            .flat_map(|key| values.iter().map(|value| [&key[..], value].concat()))
            .collect();
    }
    Ok(keys)
}

/// Takes a bound value apart into the values of the columns.
fn components(
    bound: TermValue,
    columns: &[String],
    is_tuple: bool,
) -> Result<Vec<Bytes>, CqlError> {
    let bytes = match bound {
        TermValue::Value(bytes) => bytes,
        TermValue::Null => return Err(null_in(&columns.join(", "))),
        TermValue::Unset => {
            return Err(CqlError::invalid(format!(
                "Invalid unset value for column {}",
                columns.join(", ")
            )));
        }
    };
    if !is_tuple {
        return Ok(vec![bytes]);
    }
    let mut rest = bytes;
    columns
        .iter()
        .map(|column| take_field(&mut rest).ok_or_else(|| null_in(column)))
        .collect()
}

/// The error for a statement that names more than [`MAX_KEYS`] keys.
pub(super) fn too_many_keys(count: usize) -> CqlError {
    CqlError::invalid(format!(
        "The IN restrictions name {count} keys, more than the {MAX_KEYS} that one statement may \
         write to"
    ))
}

fn null_in(columns: &str) -> CqlError {
    CqlError::invalid(format!(
        "Invalid null value in condition for column {columns}"
    ))
}

/// Takes the first field off a serialised tuple; `None` if the field is null or left out.
fn take_field(rest: &mut Bytes) -> Option<Bytes> {
    let length = i32::from_be_bytes(*rest.first_chunk::<4>()?);
    let _ = rest.split_to(4);
    let length = usize::try_from(length).ok()?;
    (length <= rest.len()).then(|| rest.split_to(length))
}

fn too_long(length: usize) -> CqlError {
    CqlError::invalid(format!(
        "Key length of {length} is longer than maximum of {MAX_PARTITION_KEY_BYTES}"
    ))
}

/// Refuses a component of a key that by itself is longer than a key may be.
fn check_components(key: &[Bytes]) -> Result<(), CqlError> {
    let mut lengths = key.iter().map(Bytes::len);
    match lengths.find(|length| *length > MAX_PARTITION_KEY_BYTES) {
        Some(length) => Err(too_long(length)),
        None => Ok(()),
    }
}

fn check_partition_key(key: &[Bytes]) -> Result<(), CqlError> {
    if let [single] = key
        && single.is_empty()
    {
        return Err(CqlError::invalid("Key may not be empty"));
    }
    // This check comes before the key is put together, where a component's length has two bytes.
    check_components(key)?;
    let length = routing_key(key).len();
    if length > MAX_PARTITION_KEY_BYTES {
        return Err(too_long(length));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_neither_empty_nor_too_long() {
        let key = |lengths: &[usize]| -> Vec<Bytes> {
            lengths
                .iter()
                .map(|length| vec![7; *length].into())
                .collect()
        };
        let refused = |lengths: &[usize]| check_partition_key(&key(lengths)).unwrap_err().message;
        assert_eq!(refused(&[0]), "Key may not be empty");
        assert_eq!(check_partition_key(&key(&[0, 0])), Ok(()));
        assert_eq!(check_partition_key(&key(&[65_535])), Ok(()));
        assert_eq!(
            refused(&[65_536]),
            "Key length of 65536 is longer than maximum of 65535"
        );
        assert_eq!(
            refused(&[65_530, 0]),
            "Key length of 65536 is longer than maximum of 65535"
        );
    }

    #[test]
    fn tuples_come_apart_and_nulls_in_them_are_refused() {
        let columns = ["a".to_owned(), "b".to_owned()];
        let tuple = |bytes: &'static [u8]| {
            components(TermValue::Value(Bytes::from_static(bytes)), &columns, true)
        };
        assert_eq!(
            tuple(b"\0\0\0\x01x\0\0\0\0").unwrap(),
            [Bytes::from_static(b"x"), Bytes::new()]
        );
        let null_b = "Invalid null value in condition for column b";
        assert_eq!(
            tuple(b"\0\0\0\x01x\xff\xff\xff\xff").unwrap_err().message,
            null_b
        );
        assert_eq!(tuple(b"\0\0\0\x01x").unwrap_err().message, null_b);
    }
}
