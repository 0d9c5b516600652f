//! Values that are put together of selected ones: tuples, collections, vectors and user types.

use bytes::{BufMut, Bytes, BytesMut};
use cql::error::CqlError;
use value::{CqlType, compare, join_elements, join_vector};

use super::{Expression, Scope, evaluate_all};
use crate::select::place::{put_bytes, put_null};

/// The largest composed value, in bytes. A statement can name one value many times.
const BYTES_MAX: usize = 16 << 20;

/// A value put together of others.
#[derive(Clone, Debug)]
pub(in crate::select) struct Composed {
    /// The form in which the parts are put together.
    pub form: Form,
    /// The parts; of a map its keys and values in turn.
    pub parts: Vec<Expression>,
    /// The text of the selector, for messages.
    pub text: String,
}

/// The form of a composed value.
#[derive(Clone, Debug)]
pub(in crate::select) enum Form {
    /// A list.
    List,
    /// A set of elements of this type.
    Set(CqlType),
    /// A map with keys of this type. Of equal keys the last one stands.
    Map(CqlType),
    /// A tuple or a value of a user type.
    Tuple,
    /// A vector with elements of this type.
    Vector(CqlType),
}

impl Composed {
    /// The serialised value; `None` for null.
    ///
    /// # Errors
    /// Parts that fail, a null in a set, a vector or the key of a map, and a value of more than 16
    /// MiB.
    pub(super) fn evaluate(&self, scope: Scope<'_>) -> Result<Option<Bytes>, CqlError> {
        let parts = evaluate_all(&self.parts, scope)?;
        let bytes: usize = parts
            .iter()
            .map(|part| part.as_ref().map_or(0, Bytes::len))
            .sum();
        if bytes > BYTES_MAX {
            return Err(CqlError::invalid(format!(
                "{} has {bytes} bytes, more than the {BYTES_MAX} allowed",
                self.text
            )));
        }
        let count = parts.len();
        Ok(Some(match &self.form {
            Form::Tuple => joined(None, parts.iter().map(Option::as_deref)),
            Form::List => joined(Some(count), parts.iter().map(Option::as_deref)),
            Form::Set(element) => {
                let mut elements = self.without_null(&parts)?;
                elements.sort_by(|a, b| compare(element, a, b));
                elements.dedup_by(|a, b| compare(element, a, b).is_eq());
                join_elements(elements.into_iter())
            }
            Form::Map(key) => {
                let pairs = parts.chunks_exact(2).rev();
                let keys: Vec<Option<Bytes>> = pairs.clone().map(|pair| pair[0].clone()).collect();
                let keys = self.without_null(&keys)?;
                let values = pairs.map(|pair| pair[1].as_deref());
                let mut entries: Vec<_> = keys.into_iter().zip(values).collect();
                // The sort is stable, so that of equal keys the last one written comes first.
                entries.sort_by(|(a, _), (b, _)| compare(key, a, b));
                entries.dedup_by(|(a, _), (b, _)| compare(key, a, b).is_eq());
                let count = entries.len();
                let parts = entries.into_iter();
                joined(
                    Some(count),
                    parts.flat_map(|(key, value)| [Some(key), value]),
                )
            }
            Form::Vector(element) => join_vector(element, self.without_null(&parts)?.into_iter()),
        }))
    }

    fn without_null<'p>(&self, parts: &'p [Option<Bytes>]) -> Result<Vec<&'p [u8]>, CqlError> {
        let parts: Option<Vec<&[u8]>> = parts.iter().map(Option::as_deref).collect();
        parts.ok_or_else(|| {
            CqlError::invalid(format!(
                "{} has a null where none may be: in a set, a vector or the key of a map",
                self.text
            ))
        })
    }
}

/// Joins parts, each behind its length, behind the count of a collection. Cassandra's collections
/// hold a null here, too.
fn joined<'p>(count: Option<usize>, parts: impl Iterator<Item = Option<&'p [u8]>>) -> Bytes {
    let mut out = BytesMut::new();
    if let Some(count) = count {
        out.put_i32(count as i32);
    }
    for part in parts {
        match part {
            Some(part) => put_bytes(&mut out, part),
            None => put_null(&mut out),
        }
    }
    out.freeze()
}
