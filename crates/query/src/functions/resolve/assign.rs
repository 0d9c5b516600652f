//! Rules for which terms may occur where a type is wanted. Functions are chosen by them, too.

use cql::ast::data_type::no_user_types;
use cql::ast::{ArithmeticOperation, Term};
use value::{CqlType, Literal};

use super::{is_of_receiver, resolve};
use crate::functions::{CallArgument, is_token};

/// A measure of how well a term fits a type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Assignability {
    /// The term can't be read as the type.
    No,
    /// The term can be read as the type, but also as others (a bind marker, an integer literal).
    Weak,
    /// The term is of that very type.
    Exact,
}

/// Returns how well `term` fits `cql_type`. A literal is judged only by its kind: `'x'` fits a
/// timestamp.
pub fn assignability(term: &Term, cql_type: &CqlType) -> Assignability {
    use Assignability::{No, Weak};
    match (term, cql_type) {
        (Term::Marker(_) | Term::Null, _) => Weak,
        (Term::Literal(literal), _) => literal_assignability(literal, cql_type),
        (Term::List(terms), CqlType::List { element, .. }) => all(terms, element),
        (
            Term::List(terms),
            CqlType::Vector {
                element,
                dimensions,
            },
        ) if terms.len() == usize::from(*dimensions) => all(terms, element),
        (Term::Set(terms), CqlType::Set { element, .. }) => all(terms, element),
        (Term::Set(terms), CqlType::Map { .. }) if terms.is_empty() => Weak,
        (Term::Map(entries), CqlType::Map { key, value, .. }) => entries
            .iter()
            .map(|(k, v)| assignability(k, key).min(assignability(v, value)))
            .min()
            .unwrap_or(Weak),
        (Term::Tuple(terms), CqlType::Tuple(types)) if terms.len() <= types.len() => terms
            .iter()
            .zip(types)
            .map(|(term, cql_type)| assignability(term, cql_type))
            .min()
            .unwrap_or(Weak),
        (Term::UserType(fields), CqlType::UserType { definition, .. }) => fields
            .iter()
            .map(|(field, term)| match definition.position(field) {
                Some(position) => assignability(term, &definition.field_types[position]),
                None => No,
            })
            .min()
            .unwrap_or(Weak),
        (Term::Tuple(terms), _) if terms.len() == 1 => assignability(&terms[0], cql_type),
        (Term::Function(call), _) if is_of_receiver(&call.name) => Weak,
        (Term::Function(call), _) if ArithmeticOperation::is_operator(&call.name) => {
            let arguments: Vec<CallArgument<'_>> =
                call.arguments.iter().map(CallArgument::Term).collect();
            match resolve(None, &call.name, &arguments, Some(cql_type)) {
                Ok(function) => type_assignability(&function.return_type, cql_type),
                Err(_) => No,
            }
        }
        (Term::Function(_) | Term::TypeHint { .. }, _) => match natural_type(term) {
            Some(natural) => type_assignability(&natural, cql_type),
            None => No,
        },
        _ => No,
    }
}

/// The one type that a term has by itself, wherever it occurs: that of a type hint or of a
/// function's result. `None` for all other terms, and for a hint with a user type, which no
/// function takes.
pub fn natural_type(term: &Term) -> Option<CqlType> {
    match term.without_parentheses() {
        Term::TypeHint { data_type, .. } => data_type.resolve(&no_user_types).ok(),
        Term::Function(call) if is_token(call) => Some(CqlType::Bigint),
        Term::Function(call) => {
            let arguments: Vec<CallArgument<'_>> =
                call.arguments.iter().map(CallArgument::Term).collect();
            resolve(call.keyspace.as_deref(), &call.name, &arguments, None)
                .ok()
                .map(|function| function.return_type)
        }
        _ => None,
    }
}

/// The type that a term has where no type is wanted: its [`natural_type`], or the type of a
/// literal. `None` for all other terms.
pub fn own_type(term: &Term) -> Option<CqlType> {
    natural_type(term).or_else(|| literal_type(term))
}

fn literal_type(term: &Term) -> Option<CqlType> {
    let Term::Literal(literal) = term.without_parentheses() else {
        return None;
    };
    Some(match literal {
        Literal::String(_) => CqlType::Text,
        Literal::Integer(digits) if digits.parse::<i32>().is_ok() => CqlType::Int,
        Literal::Integer(digits) if digits.parse::<i64>().is_ok() => CqlType::Bigint,
        Literal::Integer(_) => CqlType::Varint,
        Literal::Float(_) => CqlType::Double,
        Literal::Boolean(_) => CqlType::Boolean,
        Literal::Uuid(_) => CqlType::Uuid,
        Literal::Blob(_) => CqlType::Blob,
        Literal::Duration { .. } => CqlType::Duration,
    })
}

/// Returns how well a value of type `from` fits where `to` is wanted.
pub fn type_assignability(from: &CqlType, to: &CqlType) -> Assignability {
    // A frozen collection has the same values as one that is not. Only its storage differs.
    if from == to || from.user_type().is_none() && from.frozen() == to.frozen() {
        return Assignability::Exact;
    }
    match (from, to) {
        (_, CqlType::Blob)
        | (CqlType::Ascii, CqlType::Text)
        | (CqlType::Timeuuid, CqlType::Uuid)
        | (CqlType::Bigint, CqlType::Timestamp)
        | (CqlType::Timestamp, CqlType::Bigint)
        | (CqlType::Int, CqlType::Date)
        | (CqlType::Bigint, CqlType::Time)
        | (CqlType::Int | CqlType::Bigint | CqlType::Timestamp, CqlType::Varint) => {
            Assignability::Weak
        }
        _ => Assignability::No,
    }
}

fn all(terms: &[Term], element: &CqlType) -> Assignability {
    terms
        .iter()
        .map(|term| assignability(term, element))
        .min()
        .unwrap_or(Assignability::Weak)
}

/// Returns how well a literal fits a type, by the literal's kind only.
pub fn literal_assignability(literal: &Literal, cql_type: &CqlType) -> Assignability {
    use CqlType::*;
    let (natural, others): (CqlType, &[CqlType]) = match literal {
        // A text of only ASCII is of that type first of all, as in Cassandra.
        Literal::String(text) if text.is_ascii() => (Ascii, &[Text, Inet, Date, Time, Timestamp]),
        Literal::String(_) => (Text, &[Ascii, Inet, Date, Time, Timestamp]),
        Literal::Integer(digits) => {
            let natural = if digits.parse::<i32>().is_ok() {
                Int
            } else if digits.parse::<i64>().is_ok() {
                Bigint
            } else {
                Varint
            };
            (
                natural,
                &[
                    Int, Bigint, Varint, Smallint, Tinyint, Counter, Date, Time, Timestamp,
                    Decimal, Float, Double,
                ],
            )
        }
        Literal::Float(_) => (Double, &[Float, Decimal]),
        Literal::Boolean(_) => (Boolean, &[]),
        Literal::Uuid(uuid) if uuid.get_version_num() == 1 => (Timeuuid, &[Uuid]),
        Literal::Uuid(_) => (Uuid, &[Timeuuid]),
        Literal::Blob(_) => (Blob, &[]),
        Literal::Duration { .. } => (Duration, &[]),
    };
    if natural == *cql_type {
        Assignability::Exact
    } else if others.contains(cql_type) {
        Assignability::Weak
    } else {
        Assignability::No
    }
}

#[cfg(test)]
mod tests {
    use cql::ast::DataType;

    use super::*;

    fn integer(digits: &str) -> Term {
        Term::Literal(Literal::Integer(digits.to_owned()))
    }

    #[test]
    fn an_integer_prefers_the_narrowest_of_int_bigint_varint() {
        assert_eq!(
            assignability(&integer("1"), &CqlType::Int),
            Assignability::Exact
        );
        assert_eq!(
            assignability(&integer("3000000000"), &CqlType::Bigint),
            Assignability::Exact
        );
        assert_eq!(
            assignability(&integer("1"), &CqlType::Double),
            Assignability::Weak
        );
        assert_eq!(
            assignability(&integer("1"), &CqlType::Text),
            Assignability::No
        );
    }

    #[test]
    fn a_list_of_the_right_length_fits_a_vector() {
        let vector = CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions: 2,
        };
        let two = Term::List(vec![integer("1"), integer("2")]);
        let one = Term::List(vec![integer("1")]);
        assert_eq!(assignability(&two, &vector), Assignability::Weak);
        assert_eq!(assignability(&one, &vector), Assignability::No);
    }

    #[test]
    fn a_type_hint_fixes_the_type() {
        let hinted = Term::TypeHint {
            data_type: DataType::Simple(CqlType::Bigint),
            term: Box::new(integer("1")),
        };
        assert_eq!(
            assignability(&hinted, &CqlType::Bigint),
            Assignability::Exact
        );
        assert_eq!(
            assignability(&hinted, &CqlType::Varint),
            Assignability::Weak
        );
        assert_eq!(assignability(&hinted, &CqlType::Int), Assignability::No);
    }
}
