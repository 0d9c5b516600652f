//! Scalar functions: what may be called in a selection and within a term.
//!
//! One table (`table`) declares them all. [`resolve`] picks the declaration that a call means,
//! by name and by what is known of its arguments, and settles the types; the result evaluates
//! serialised values. `token()` depends on the table it is called for and `cast` is no function in the
//! grammar, so both belong to the selection.

use bytes::Bytes;
use cql::ast::Term;
use cql::error::CqlError;
use cql::types::CqlType;

use crate::clock::StatementClock;

/// What is known of an argument before its function is chosen.
#[derive(Clone, Copy, Debug)]
pub enum Argument<'a> {
    /// A term; it takes the type that the function wants, if it can.
    Term(&'a Term),
    /// Something of a settled type (a column, a selected function), with its text for messages.
    Typed { cql_type: &'a CqlType, text: &'a str },
}

/// A function with its types settled.
#[derive(Clone, Debug)]
pub struct ScalarFunction {
    /// As called, in lower case, without a keyspace.
    pub name: &'static str,
    pub argument_types: Vec<CqlType>,
    pub return_type: CqlType,
    /// Equal arguments give equal results, whenever it is called: calls of constants may be folded.
    pub is_pure: bool,
}

/// Finds the function that a call means.
///
/// `keyspace` is that of the call (`system.now()`), `receiver` the type that is wanted of the
/// result, if it is known.
///
/// # Errors
/// Unknown function, wrong number or types of arguments, or a call that several functions fit.
pub fn resolve(
    keyspace: Option<&str>,
    name: &str,
    arguments: &[Argument<'_>],
    receiver: Option<&CqlType>,
) -> Result<ScalarFunction, CqlError> {
    let _ = (keyspace, name, arguments, receiver);
    todo!()
}

impl ScalarFunction {
    /// The result for serialised arguments, as many as there are argument types and valid for
    /// them; `None` is null.
    ///
    /// # Errors
    /// If the arguments have no result (a time out of range, bytes that are no value of the type).
    pub fn evaluate(
        &self,
        arguments: &[Option<Bytes>],
        clock: &StatementClock,
    ) -> Result<Option<Bytes>, CqlError> {
        let _ = (arguments, clock);
        todo!()
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
