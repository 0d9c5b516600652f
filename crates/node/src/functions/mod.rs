//! Scalar functions: what may be called in a selection and within a term.
//!
//! One table (`table.rs`) declares them all. [`resolve`] picks the declaration that a call means,
//! by name and by what is known of its arguments, and settles the types; the result evaluates
//! serialised values. `token()` depends on the table it is called for and `cast` is no function in
//! the grammar, so both belong to the selection; what a cast does is in [`Cast`].

mod blob;
mod cast;
mod json;
mod resolve;
mod similarity;
mod table;
mod text;
mod time;

use bytes::Bytes;
use cql::ast::Term;
use cql::error::CqlError;
use cql::types::CqlType;

use crate::clock::StatementClock;

pub use cast::Cast;
pub use resolve::resolve;
pub use text::{term_excerpt, term_text};

/// What is known of an argument before its function is chosen.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A term; it takes the type that the function wants, if it can.
    Term(&'a Term),
    /// Something of a settled type (a column, a selected function), with its text for messages.
    Typed {
        /// Its type.
        cql_type: &'a CqlType,
        /// How it is called in messages.
        text: &'a str,
    },
}

/// A function with its types settled.
#[derive(Clone, Debug)]
pub struct ScalarFunction {
    /// As called, in lower case, without a keyspace.
    pub name: &'static str,
    /// What [`ScalarFunction::evaluate`] takes, in order.
    pub argument_types: Vec<CqlType>,
    /// What it gives.
    pub return_type: CqlType,
    /// Equal arguments give equal results, whenever it is called: calls of constants may be folded.
    pub is_pure: bool,
    body: Body,
}

/// What a function does.
#[derive(Clone, Copy, Debug)]
enum Body {
    /// With serialised arguments, none of which is null.
    OfValues(OfValues),
    /// With one of any type, or null.
    ToJson,
}

type OfValues = fn(&[&[u8]], &StatementClock) -> Result<Bytes, CqlError>;

/// More than any declared function takes.
const ARGUMENTS_MAX: usize = 2;

impl ScalarFunction {
    /// The result for serialised arguments, as many as there are argument types and valid for
    /// them; `None` is null. Any null argument gives null, but for `toJson`.
    ///
    /// # Errors
    /// If the arguments have no result (a time out of range, bytes that are no value of the type).
    pub fn evaluate(
        &self,
        arguments: &[Option<Bytes>],
        clock: &StatementClock,
    ) -> Result<Option<Bytes>, CqlError> {
        let body = match self.body {
            Body::OfValues(body) => body,
            Body::ToJson => {
                let value = arguments.first().and_then(Option::as_deref);
                return json::to_json(&self.argument_types[0], value).map(Some);
            }
        };
        let mut present: [&[u8]; ARGUMENTS_MAX] = [&[]; ARGUMENTS_MAX];
        for (slot, argument) in present.iter_mut().zip(arguments) {
            match argument {
                Some(bytes) => *slot = bytes,
                None => return Ok(None),
            }
        }
        body(&present[..arguments.len()], clock).map(Some)
    }

    /// The name with its keyspace: `system.now`.
    pub fn full_name(&self) -> String {
        format!("system.{}", self.name)
    }

    /// The name of a bind marker that is an argument: `arg0(system.mintimeuuid)`.
    pub fn argument_name(&self, index: usize) -> String {
        format!("arg{index}({})", self.full_name())
    }
}
