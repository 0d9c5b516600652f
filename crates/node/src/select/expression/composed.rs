//! Values that are put together of selected ones: tuples, collections, vectors and user types.

use bytes::{BufMut, Bytes, BytesMut};
use cql::error::CqlError;
use value::{CqlType, compare, join_elements, join_entries, join_vector};

use super::{EvaluationContext, Expression};
use crate::select::column_location::{put_bytes, put_null};

/// The most bytes that the composed values of a row take, each counted at every level that contains
/// it. A statement can name one value many times.
pub(in crate::select) const COMPOSED_BYTES_MAX: usize = 16 << 20;

/// A value put together of others.
#[derive(Clone, Debug)]
pub(in crate::select) struct CompositeExpression {
    /// The form in which the parts are put together.
    pub form: CompositeKind,
    /// The parts; of a map its keys and values in turn.
    pub parts: Vec<Expression>,
    /// The text of the selector, for messages.
    pub text: String,
}

/// The form of a composed value.
#[derive(Clone, Debug)]
pub(in crate::select) enum CompositeKind {
    /// A list.
    List,
    /// A set of elements of this type.
    Set(CqlType),
    /// A map with keys of this type. Of equal keys the last one is taken.
    Map(CqlType),
    /// A tuple or a value of a user type.
    Tuple,
    /// A vector with elements of this type.
    Vector(CqlType),
}

impl CompositeExpression {
    /// The serialised value; `None` for null.
    ///
    /// # Errors
    /// Parts that fail, a null in a set, a map or a vector, and composed values of more than 16
    /// MiB.
    pub(super) fn evaluate(&self, scope: EvaluationContext<'_>) -> Result<Option<Bytes>, CqlError> {
        let mut parts = Vec::with_capacity(self.parts.len());
        for part in &self.parts {
            let part = part.evaluate(scope)?;
            let bytes = size_of::<Option<Bytes>>() + part.as_ref().map_or(0, Bytes::len);
            let left = scope.composed_bytes.get().checked_sub(bytes);
            scope.composed_bytes.set(left.ok_or_else(|| {
                CqlError::invalid(format!(
                    "The composed values of a row take more than the {COMPOSED_BYTES_MAX} bytes \
                     allowed: {}",
                    self.text
                ))
            })?);
            parts.push(part);
        }
        let count = parts.len();
        Ok(Some(match &self.form {
            CompositeKind::Tuple => joined(None, parts.iter().map(Option::as_deref)),
            CompositeKind::List => joined(Some(count), parts.iter().map(Option::as_deref)),
            CompositeKind::Set(element) => {
                let mut elements = self.without_null(&parts)?;
                elements.sort_by(|a, b| compare(element, a, b));
                elements.dedup_by(|a, b| compare(element, a, b).is_eq());
                join_elements(elements.into_iter())
            }
            CompositeKind::Map(key) => {
                let parts = self.without_null(&parts)?;
                let pairs = parts.chunks_exact(2).rev();
                let mut entries: Vec<_> = pairs.map(|pair| (pair[0], pair[1])).collect();
                // The sort is stable, so that of equal keys the last one written comes first.
                entries.sort_by(|(a, _), (b, _)| compare(key, a, b));
                entries.dedup_by(|(a, _), (b, _)| compare(key, a, b).is_eq());
                join_entries(entries.into_iter())
            }
            CompositeKind::Vector(element) => {
                let parts = self.without_null(&parts)?;
                let length = element.fixed_length();
                if parts
                    .iter()
                    .any(|part| length.is_some_and(|length| part.len() != length))
                {
                    return Err(CqlError::invalid(format!(
                        "{} has an element without a value",
                        self.text
                    )));
                }
                join_vector(element, parts.into_iter())
            }
        }))
    }

    fn without_null<'p>(&self, parts: &'p [Option<Bytes>]) -> Result<Vec<&'p [u8]>, CqlError> {
        let parts: Option<Vec<&[u8]>> = parts.iter().map(Option::as_deref).collect();
        parts.ok_or_else(|| {
            CqlError::invalid(format!(
                "{} has a null where none may be: in a set, a map or a vector",
                self.text
            ))
        })
    }
}

/// Joins parts, each after its length, and puts the count of a list before them. Cassandra's lists
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
