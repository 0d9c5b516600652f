//! Terms as data: the values that a statement writes out or leaves to bind markers.

use value::Literal;

use super::DataType;

/// A bind marker: `?` or `:name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BindMarker {
    /// The position among all markers of the statement, from 0.
    pub index: u16,
    /// The name of a `:name`; `None` for `?`.
    pub name: Option<String>,
}

/// A value as written.
#[derive(Clone, Debug, PartialEq)]
pub enum Term {
    /// A bind marker.
    Marker(BindMarker),
    /// `null`.
    Null,
    /// A constant other than null.
    Literal(Literal),
    /// `[a, b]`: a list or a vector.
    List(Vec<Term>),
    /// `{a, b}`. An empty `{}` is an empty set, list or map, whatever the column is.
    Set(Vec<Term>),
    /// `{k: v}`.
    Map(Vec<(Term, Term)>),
    /// `{field: v}`: a value of a user type.
    UserType(Vec<(String, Term)>),
    /// `(a, b)`. With one element it is a tuple only where a tuple is wanted, and a term in
    /// parentheses everywhere else ([`Term::without_parentheses`]).
    Tuple(Vec<Term>),
    /// `name(args)` or `keyspace.name(args)`.
    Function(FunctionCall<Term>),
    /// `(type) term`.
    TypeHint {
        /// The type in parentheses.
        data_type: DataType,
        /// The term after it.
        term: Box<Term>,
    },
}

impl Term {
    /// The term without parentheses around it, for places where no tuple can be meant: `((1))` is
    /// `1`.
    pub fn without_parentheses(&self) -> &Term {
        match self {
            Term::Tuple(terms) if terms.len() == 1 => terms[0].without_parentheses(),
            term => term,
        }
    }
}

/// A function call: `[keyspace.]name(arguments)`.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionCall<Argument> {
    /// The keyspace before the name, if one is written.
    pub keyspace: Option<String>,
    /// The name of the function.
    pub name: String,
    /// The arguments, possibly none.
    pub arguments: Vec<Argument>,
}
