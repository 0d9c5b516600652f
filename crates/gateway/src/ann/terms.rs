//! The vector and the LIMIT of a query: read from the statement, and evaluated once values are
//! bound.

use bytes::{Bytes, BytesMut};
use cql::ast::{BindMarker, Term};
use cql::error::CqlError;
use cql::wire::BoundValue;
use query::{bounds, clauses};
use value::{CqlType, Literal, from_literal, validate};

/// The vector to search for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum VectorTerm {
    /// The vector is bound to the marker with this index.
    Marker(u16),
    /// The vector is written in the statement. Serialised.
    Constant(Bytes),
}

impl VectorTerm {
    /// Reads the term. `column` is the column's name, for messages.
    ///
    /// # Errors
    /// If the term is no vector of `dimensions` floats, or one that the gateway does not evaluate.
    pub(super) fn of(term: &Term, column: &str, dimensions: u16) -> Result<VectorTerm, CqlError> {
        let term = term.without_parentheses();
        clauses::check_dimensions(term, None, dimensions)?;
        match term {
            Term::Marker(marker) => Ok(VectorTerm::Marker(marker.index)),
            Term::List(elements) => {
                let mut bytes = BytesMut::with_capacity(4 * elements.len());
                for element in elements {
                    bytes.extend_from_slice(&float(element, column)?);
                }
                Ok(VectorTerm::Constant(bytes.freeze()))
            }
            Term::TypeHint { cql_type, term } => {
                clauses::check_dimensions(term, Some(cql_type), dimensions)?;
                VectorTerm::of(term, column, dimensions)
            }
            Term::Null => Err(bounds::null_vector(column)),
            _ => Err(CqlError::invalid(format!(
                "Invalid vector for {column}: write it as a list of numbers or bind it to a marker"
            ))),
        }
    }

    /// The index of the marker, if there is one.
    pub(super) fn marker(&self) -> Option<u16> {
        match self {
            VectorTerm::Marker(index) => Some(*index),
            VectorTerm::Constant(_) => None,
        }
    }

    /// The serialised vector of an execution. `values` are in the order of the markers.
    ///
    /// # Errors
    /// If the value is null or unset, or no vector of `dimensions` finite floats.
    pub(super) fn value(
        &self,
        values: &[BoundValue],
        column: &str,
        dimensions: u16,
    ) -> Result<Bytes, CqlError> {
        let marker = match self {
            VectorTerm::Constant(bytes) => {
                bounds::check_finite(bytes, column)?;
                return Ok(bytes.clone());
            }
            VectorTerm::Marker(marker) => usize::from(*marker),
        };
        let bytes = match values.get(marker) {
            Some(BoundValue::Value(bytes)) => bytes,
            Some(BoundValue::Null) => return Err(bounds::null_vector(column)),
            Some(BoundValue::Unset) | None => return Err(bounds::unset_vector(column)),
        };
        bounds::check_bound_dimensions(bytes, dimensions)?;
        let cql_type = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions,
        };
        validate(&cql_type, bytes).map_err(|error| {
            CqlError::invalid(format!("Invalid value for {column}: {}", error.0))
        })?;
        bounds::check_finite(bytes, column)?;
        Ok(bytes.clone())
    }
}

fn float(element: &Term, column: &str) -> Result<Bytes, CqlError> {
    let literal = match element.without_parentheses() {
        Term::Literal(literal @ (Literal::Integer(_) | Literal::Float(_))) => literal,
        Term::Null => {
            return Err(CqlError::invalid(format!(
                "null is not supported inside vectors (column {column})"
            )));
        }
        _ => {
            return Err(CqlError::invalid(format!(
                "Invalid vector literal for {column}: an element is not of type float"
            )));
        }
    };
    from_literal(&CqlType::Float, literal)
        .map_err(|error| CqlError::invalid(format!("Invalid value for {column}: {}", error.0)))
}

/// The number of rows to return.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum LimitTerm {
    /// The number is bound to the marker with this index.
    Marker(u16),
    /// The number is written in the statement. It is positive.
    Constant(u32),
}

impl LimitTerm {
    /// Reads the term.
    ///
    /// # Errors
    /// If the term is no positive number.
    pub(super) fn of(term: &Term) -> Result<LimitTerm, CqlError> {
        match term {
            Term::Marker(BindMarker { index, .. }) => Ok(LimitTerm::Marker(*index)),
            Term::Literal(literal) => {
                let bytes = from_literal(&CqlType::Int, literal).map_err(|error| {
                    CqlError::invalid(format!("Invalid value for [limit]: {}", error.0))
                })?;
                bounds::limit_value(&bytes).map(LimitTerm::Constant)
            }
            _ => Err(CqlError::invalid("Invalid limit value")),
        }
    }

    /// The index of the marker, if there is one.
    pub(super) fn marker(self) -> Option<u16> {
        match self {
            LimitTerm::Marker(index) => Some(index),
            LimitTerm::Constant(_) => None,
        }
    }

    /// The number of rows that an execution asks for.
    ///
    /// # Errors
    /// If the number is null, unset, not positive or too great.
    pub(super) fn value(self, values: &[BoundValue]) -> Result<usize, CqlError> {
        let limit = match self {
            LimitTerm::Constant(limit) => Some(limit),
            LimitTerm::Marker(marker) => match values.get(usize::from(marker)) {
                Some(BoundValue::Value(bytes)) => Some(bounds::limit_value(bytes)?),
                Some(BoundValue::Null) => {
                    return Err(CqlError::invalid("Invalid null value of limit"));
                }
                Some(BoundValue::Unset) | None => None,
            },
        };
        bounds::checked_limit(limit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn literal(text: &str) -> Term {
        Term::Literal(Literal::Float(text.to_owned()))
    }

    fn bound(bytes: &[u8]) -> [BoundValue; 1] {
        [BoundValue::Value(Bytes::copy_from_slice(bytes))]
    }

    #[test]
    fn a_written_vector_is_serialised_once() {
        let term = Term::List(vec![literal("1.5"), literal("-2")]);
        let vector = VectorTerm::of(&term, "v", 2).unwrap();
        let bytes = vector.value(&[], "v", 2).unwrap();
        assert_eq!(bounds::elements(&bytes), [1.5, -2.0]);
        let senseless = Term::List(vec![literal("1.5"), literal("NaN")]);
        let senseless = VectorTerm::of(&senseless, "v", 2).unwrap();
        let error = senseless.value(&[], "v", 2).unwrap_err();
        assert!(error.message.contains("element 1 of"), "{error}");
        let hinted = Term::TypeHint {
            cql_type: cql::parser::parse_type("vector<float, 2>").unwrap(),
            term: Box::new(term),
        };
        assert!(VectorTerm::of(&hinted, "v", 2).is_ok());
        assert!(VectorTerm::of(&hinted, "v", 3).is_err());
        for senseless in [
            Term::Null,
            literal("1"),
            Term::List(vec![Term::Null, literal("1")]),
            Term::List(vec![Term::List(Vec::new()), literal("1")]),
        ] {
            assert!(VectorTerm::of(&senseless, "v", 2).is_err(), "{senseless:?}");
        }
    }

    #[test]
    fn a_bound_vector_is_checked() {
        let vector = VectorTerm::Marker(0);
        let text = |values: &[BoundValue]| vector.value(values, "v", 2).unwrap_err().message;
        assert!(vector.value(&bound(&[0; 8]), "v", 2).is_ok());
        assert!(text(&bound(&[0; 12])).contains("the same vector dimensions"));
        let infinite = [1.0f32, f32::INFINITY].map(f32::to_be_bytes).concat();
        assert!(text(&bound(&infinite)).contains("element 1 of a vector<float, 2> is inf"));
        assert!(text(&bound(&[0; 7])).contains("Invalid value for v"));
        assert!(text(&[BoundValue::Null]).contains("Unsupported null value for column v"));
        assert!(text(&[BoundValue::Unset]).contains("Unsupported unset value"));
    }

    #[test]
    fn a_limit_is_positive_and_not_too_great() {
        let limit = LimitTerm::Marker(0);
        assert_eq!(limit.value(&bound(&7i32.to_be_bytes())), Ok(7));
        let text = |values: &[BoundValue]| limit.value(values).unwrap_err().message;
        assert!(text(&bound(&(-1i32).to_be_bytes())).contains("strictly positive"));
        assert!(text(&bound(&1001i32.to_be_bytes())).contains("not greater than 1000"));
        assert!(text(&bound(&[1])).contains("Invalid limit value"));
        assert!(text(&[BoundValue::Null]).contains("null value of limit"));
        assert!(text(&[BoundValue::Unset]).contains("must have a limit"));
        assert!(LimitTerm::Constant(1001).value(&[]).is_err());
    }
}
