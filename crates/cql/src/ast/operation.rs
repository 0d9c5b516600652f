//! Operators. They are calls of functions, by names that only they have, as in Cassandra.

use super::{FunctionCall, Selector, Term};

/// The name of the function that a minus sign before a value calls.
pub const NEGATION: &str = "_negate";

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArithmeticOperation {
    /// `a + b`.
    Add,
    /// `a - b`.
    Subtract,
    /// `a * b`.
    Multiply,
    /// `a / b`.
    Divide,
    /// `a % b`.
    Modulo,
}

impl ArithmeticOperation {
    /// All operators.
    pub const ALL: [ArithmeticOperation; 5] = [
        ArithmeticOperation::Add,
        ArithmeticOperation::Subtract,
        ArithmeticOperation::Multiply,
        ArithmeticOperation::Divide,
        ArithmeticOperation::Modulo,
    ];

    /// The sign between the values.
    pub fn symbol(self) -> &'static str {
        match self {
            ArithmeticOperation::Add => "+",
            ArithmeticOperation::Subtract => "-",
            ArithmeticOperation::Multiply => "*",
            ArithmeticOperation::Divide => "/",
            ArithmeticOperation::Modulo => "%",
        }
    }

    /// The name of the function that is called.
    pub fn function(self) -> &'static str {
        match self {
            ArithmeticOperation::Add => "_add",
            // Cassandra's own spelling, which drivers see in the names of bind markers.
            ArithmeticOperation::Subtract => "_substract",
            ArithmeticOperation::Multiply => "_multiply",
            ArithmeticOperation::Divide => "_divide",
            ArithmeticOperation::Modulo => "_modulo",
        }
    }

    /// The operator that calls the function of this name.
    pub fn of_function(name: &str) -> Option<ArithmeticOperation> {
        ArithmeticOperation::ALL
            .into_iter()
            .find(|operation| operation.function() == name)
    }

    /// Whether an operator or the minus sign calls the function of this name.
    pub fn is_operator(name: &str) -> bool {
        name == NEGATION || ArithmeticOperation::of_function(name).is_some()
    }

    /// Whether the operator binds its operands closer than `+` and `-` do.
    pub fn is_product(self) -> bool {
        !matches!(
            self,
            ArithmeticOperation::Add | ArithmeticOperation::Subtract
        )
    }
}

/// A tree in which operators occur.
pub trait Operand: Sized {
    /// Whether columns occur in such trees.
    const HOLDS_COLUMNS: bool;

    /// The call of a function of such values.
    fn call(call: FunctionCall<Self>) -> Self;

    /// The operator between two values.
    #[must_use]
    fn operated(operation: ArithmeticOperation, left: Self, right: Self) -> Self {
        Self::call(FunctionCall {
            keyspace: None,
            name: operation.function().to_owned(),
            arguments: vec![left, right],
        })
    }

    /// The value with a minus sign before it.
    #[must_use]
    fn negated(operand: Self) -> Self {
        Self::call(FunctionCall {
            keyspace: None,
            name: NEGATION.to_owned(),
            arguments: vec![operand],
        })
    }
}

impl Operand for Term {
    const HOLDS_COLUMNS: bool = false;

    fn call(call: FunctionCall<Term>) -> Term {
        Term::Function(call)
    }
}

impl Operand for Selector {
    const HOLDS_COLUMNS: bool = true;

    fn call(call: FunctionCall<Selector>) -> Selector {
        Selector::Function(call)
    }
}
