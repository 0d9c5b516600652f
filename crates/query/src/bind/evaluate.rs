//! Evaluation of prepared terms with the bound values.

use bytes::{BufMut, Bytes, BytesMut};
use cql::error::CqlError;
use cql::wire::BoundValue;
use value::{CqlType, Value};

use super::prepare::{TermNode, invalid_value, null_inside};
use super::{PreparedTerm, StatementClock, TermValue};

impl PreparedTerm {
    /// The value of the term. The values bound to markers are checked against their types here.
    ///
    /// # Errors
    /// A bound value that is not of its type, null or unset within a collection, and a function
    /// that fails.
    pub fn evaluate(
        &self,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<TermValue, CqlError> {
        match &self.node {
            TermNode::Constant(bound) => Ok(bound.clone()),
            TermNode::Marker(index) => self.bound(values.get(usize::from(*index))),
            TermNode::Elements(terms) => self.elements(terms, values, clock),
            TermNode::Fields(terms) => self.fields(terms, values, clock, |position| {
                let field = match &self.cql_type {
                    CqlType::UserType { definition, .. } => &definition.field_names[position],
                    _ => "",
                };
                format!("Invalid unset value for field '{field}' of {}", self.name)
            }),
            TermNode::Entries(entries) => self.entries(entries, values, clock),
            TermNode::Hinted(inner) => inner.evaluate(values, clock),
            TermNode::Function {
                function,
                arguments,
            } => {
                let arguments = arguments
                    .iter()
                    .map(|argument| match argument.evaluate(values, clock)? {
                        TermValue::Value(bytes) => Ok(Some(bytes)),
                        TermValue::Null => Ok(None),
                        TermValue::Unset => Err(CqlError::invalid(format!(
                            "Invalid unset value for argument in call to function {}",
                            function.name
                        ))),
                    })
                    .collect::<Result<Vec<_>, _>>()?;
                Ok(match function.evaluate(&arguments, clock)? {
                    Some(bytes) => TermValue::Value(bytes),
                    None => TermValue::Null,
                })
            }
        }
    }

    fn bound(&self, value: Option<&BoundValue>) -> Result<TermValue, CqlError> {
        match value {
            Some(BoundValue::Value(bytes)) => value::canonical(&self.cql_type, bytes)
                .map(TermValue::Value)
                .map_err(|error| invalid_value(&self.name, &error.0)),
            Some(BoundValue::Null) => Ok(TermValue::Null),
            Some(BoundValue::Unset) => Ok(TermValue::Unset),
            // The server checks the count of the values before it executes a plan.
            None => Err(CqlError::server(format!(
                "no value was bound for {}",
                self.name
            ))),
        }
    }

    fn elements(
        &self,
        terms: &[PreparedTerm],
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<TermValue, CqlError> {
        if let CqlType::Tuple(_) = self.cql_type {
            return self.fields(terms, values, clock, |position| {
                format!(
                    "Invalid unset value for tuple field number {position} of {}",
                    self.name
                )
            });
        }
        let kind = match self.cql_type {
            CqlType::Vector { .. } => "vector",
            _ => "collection",
        };
        let elements = terms
            .iter()
            .map(|term| self.part(kind, term, values, clock))
            .collect::<Result<Vec<Bytes>, _>>()?;
        let bytes = match &self.cql_type {
            CqlType::Vector { element, .. } => {
                vector(element, &elements).map_err(|error| invalid_value(&self.name, &error.0))?
            }
            _ => value::join_elements(elements.iter().map(Bytes::as_ref)),
        };
        self.canonical(&bytes)
    }

    fn entries(
        &self,
        entries: &[(PreparedTerm, PreparedTerm)],
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<TermValue, CqlError> {
        let entries = entries
            .iter()
            .map(|(key, value)| {
                Ok((
                    self.part("collection", key, values, clock)?,
                    self.part("collection", value, values, clock)?,
                ))
            })
            .collect::<Result<Vec<(Bytes, Bytes)>, CqlError>>()?;
        let bytes = value::join_entries(entries.iter().map(|(k, v)| (k.as_ref(), v.as_ref())));
        self.canonical(&bytes)
    }

    /// The bytes of an element, which must be neither null nor unset.
    fn part(
        &self,
        kind: &str,
        term: &PreparedTerm,
        values: &[BoundValue],
        clock: &StatementClock,
    ) -> Result<Bytes, CqlError> {
        match term.evaluate(values, clock)? {
            TermValue::Value(bytes) => Ok(bytes),
            TermValue::Null => Err(null_inside(kind, &self.name)),
            TermValue::Unset => Err(CqlError::invalid(format!(
                "unset value is not supported inside {kind}s (column {})",
                self.name
            ))),
        }
    }

    /// The fields of a tuple or user type as one value. `unset` is the message for a field whose
    /// marker was left unset.
    fn fields(
        &self,
        terms: &[PreparedTerm],
        values: &[BoundValue],
        clock: &StatementClock,
        unset: impl Fn(usize) -> String,
    ) -> Result<TermValue, CqlError> {
        let mut out = BytesMut::new();
        for (position, term) in terms.iter().enumerate() {
            match term.evaluate(values, clock)? {
                TermValue::Value(bytes) => {
                    out.put_i32(bytes.len() as i32);
                    out.put_slice(&bytes);
                }
                TermValue::Null => out.put_i32(-1),
                TermValue::Unset => return Err(CqlError::invalid(unset(position))),
            }
        }
        self.canonical(&out.freeze())
    }

    fn canonical(&self, bytes: &Bytes) -> Result<TermValue, CqlError> {
        value::canonical(&self.cql_type, bytes)
            .map(TermValue::Value)
            .map_err(|error| invalid_value(&self.name, &error.0))
    }
}

fn vector(element: &CqlType, elements: &[Bytes]) -> Result<Bytes, value::ValueError> {
    if element.fixed_length().is_some() {
        return Ok(elements.concat().into());
    }
    let values = elements
        .iter()
        .map(|bytes| Value::deserialize(element, bytes))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(Value::Vector(values).serialize())
}
