//! Scalar functions, which may be called in a selection and within a term.
//!
//! One table (`table.rs`) declares those with fixed types. The others are resolved by the types of
//! their arguments: operators, and functions of collections and of masks. [`resolve()`] picks the
//! function that a call means, by the name and by the known types of its arguments, and settles the
//! types. Terms are judged by [`assignability`], which needs the types of the functions that they
//! call. The resulting [`ScalarFunction`] evaluates serialised values. `token()` takes the key of
//! the table for which it is called ([`TokenKey`]). `CAST(x AS type)` is no call in the grammar: in
//! a term the parser makes it one of `cast_as_type`, and the selection handles its own;
//! [`TypeCast`] does the conversion.

pub(crate) mod astra;
mod blob;
mod cast;
mod collections;
mod exponent;
mod floor;
mod hash;
mod json;
mod mask;
mod math;
mod numbers;
mod operation;
mod resolve;
mod similarity;
mod table;
mod text;
mod time;
mod token;

use bytes::Bytes;
pub use cast::TypeCast;
use collections::CollectionFunction;
use cql::ast::{ArithmeticOperation, Term};
use cql::error::CqlError;
use mask::DataMask;
pub use resolve::{
    Assignability, assignability, literal_assignability, natural_type, own_type, resolve,
    takes_float_vectors, type_assignability,
};
pub use text::{term_excerpt, term_text};
pub use token::{TokenKey, is_token};
use value::token::Partitioner;
use value::{CqlType, Value};

use crate::statement_clock::StatementClock;

/// An argument of a call, as it is known before the function is chosen.
#[derive(Clone, Copy, Debug)]
pub enum CallArgument<'a> {
    /// A term. It takes the type of the function's parameter, if it can.
    Term(&'a Term),
    /// An expression with a fixed type, such as a column or the result of another function.
    Typed {
        /// The type of the expression.
        cql_type: &'a CqlType,
        /// The text of the expression in messages.
        text: &'a str,
    },
}

/// A function whose types are known.
#[derive(Clone, Debug)]
pub struct ScalarFunction {
    /// The name by which it was called, in lower case and without a keyspace.
    pub name: &'static str,
    /// The types of the arguments of [`ScalarFunction::evaluate`], in order.
    pub argument_types: Vec<CqlType>,
    /// The type of the result.
    pub return_type: CqlType,
    /// Whether calls with constants may be folded: equal arguments always give equal results, and
    /// none that take long.
    pub is_foldable: bool,
    body: FunctionBody,
}

/// The implementation of a function.
#[derive(Clone, Copy, Debug)]
enum FunctionBody {
    /// Takes serialised arguments, none of which is null or an empty value of a type whose values
    /// have bytes.
    OfValues(OfValues),
    /// Takes serialised arguments, none of which is null.
    OfBytes(OfValues),
    /// Takes one argument of any type, which may be null.
    ToJson,
    /// Takes a text, and returns a value of the call's own type.
    FromJson,
    /// Takes a collection.
    OfCollection(CollectionFunction),
    /// Masks its first argument. Any argument may be null.
    Mask(DataMask),
    /// An operator between two values.
    Operation(ArithmeticOperation),
    /// The sign before a number.
    Negation,
    /// A cast of the argument to the type of the result.
    Cast,
    /// The token of a partition key.
    Token(Partitioner),
}

type OfValues = fn(&[&[u8]], &StatementClock) -> Result<Bytes, CqlError>;

/// The most arguments of any declared function.
const ARGUMENTS_MAX: usize = 3;

impl ScalarFunction {
    /// Evaluates the function for serialised arguments. There must be one for each of the argument
    /// types, valid for it; `None` is null. Any null argument gives null, except for `toJson` and
    /// masks. So does an empty one where the type's values have bytes, except for conversions to
    /// and from blobs.
    ///
    /// # Errors
    /// If there is no result for the arguments: a time is out of range, bytes are no value of the
    /// type, or the results of one row take too many bytes together.
    pub fn evaluate(
        &self,
        arguments: &[Option<Bytes>],
        clock: &StatementClock,
    ) -> Result<Option<Bytes>, CqlError> {
        let result = self.result(arguments, clock)?;
        clock.take_result(result.as_ref().map_or(0, Bytes::len))?;
        Ok(result)
    }

    fn result(
        &self,
        arguments: &[Option<Bytes>],
        clock: &StatementClock,
    ) -> Result<Option<Bytes>, CqlError> {
        let body = match self.body {
            FunctionBody::OfValues(body) | FunctionBody::OfBytes(body) => body,
            FunctionBody::FromJson => {
                let text = arguments.first().and_then(Option::as_deref);
                return json::from_json(&self.return_type, text);
            }
            FunctionBody::OfCollection(function) => {
                return match arguments.first().and_then(Option::as_deref) {
                    Some(value) => function.evaluate(&self.argument_types[0], value),
                    None => Ok(None),
                };
            }
            FunctionBody::Mask(mask) => return mask.evaluate(&self.return_type, arguments),
            FunctionBody::Operation(operation) => {
                let types = &self.argument_types;
                return operation::operate(operation, types, &self.return_type, arguments);
            }
            FunctionBody::Negation => {
                let argument = arguments.first().and_then(Option::as_ref);
                return operation::negate(&self.return_type, argument);
            }
            FunctionBody::Cast => {
                return match arguments.first().and_then(Option::as_ref) {
                    Some(value) => {
                        TypeCast::new(&self.argument_types[0], &self.return_type)?.apply(value)
                    }
                    None => Ok(None),
                };
            }
            FunctionBody::Token(partitioner) => return Ok(token::of_key(partitioner, arguments)),
            FunctionBody::ToJson => {
                let value = arguments.first().and_then(Option::as_deref);
                return json::to_json(&self.argument_types[0], value).map(Some);
            }
        };
        let mut present: [&[u8]; ARGUMENTS_MAX] = [&[]; ARGUMENTS_MAX];
        let takes_empty = matches!(self.body, FunctionBody::OfBytes(_));
        let arguments_with_types = arguments.iter().zip(&self.argument_types);
        for (slot, (argument, cql_type)) in present.iter_mut().zip(arguments_with_types) {
            match argument {
                Some(bytes) if takes_empty || !is_empty_value(cql_type, bytes) => *slot = bytes,
                _ => return Ok(None),
            }
        }
        body(&present[..arguments.len()], clock).map(Some)
    }

    /// The name with the keyspace: `system.now`.
    pub fn full_name(&self) -> String {
        format!("system.{}", self.name)
    }

    /// The name of a bind marker that is an argument of the function: `arg0(system.mintimeuuid)`.
    pub fn argument_name(&self, index: usize) -> String {
        format!("arg{index}({})", self.full_name())
    }
}

/// Whether the bytes are the empty value of a type whose other values have bytes.
fn is_empty_value(cql_type: &CqlType, bytes: &[u8]) -> bool {
    bytes.is_empty() && matches!(Value::deserialize(cql_type, bytes), Ok(Value::Empty))
}
