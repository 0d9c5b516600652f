//! Preparation of terms: checks each against the type of its place.

use cql::ast::{FunctionCall, Term};
use cql::error::CqlError;
use value::identifier::Identifier;
use value::{CqlType, Literal, UserType, from_literal};

use super::text::{literal_kind, literal_text, term_text};
use super::{PrepareContext, PreparedTerm, StatementClock, TermValue};
use crate::functions::{self, Assignability, CallArgument, ScalarFunction};

/// The form of a prepared term.
#[derive(Clone, Debug)]
pub(super) enum TermNode {
    /// A value that is known before execution.
    Constant(TermValue),
    /// A bind marker, by its index.
    Marker(u16),
    /// The elements of a list, set, vector or tuple.
    Elements(Vec<PreparedTerm>),
    /// The fields of a user type, one for each field of the type.
    Fields(Vec<PreparedTerm>),
    /// The entries of a map.
    Entries(Vec<(PreparedTerm, PreparedTerm)>),
    /// A call of a scalar function.
    Function {
        function: ScalarFunction,
        arguments: Vec<PreparedTerm>,
    },
    /// A term with a type hint, whose values are valid for the place's type, too.
    Hinted(Box<PreparedTerm>),
}

/// Checks `term` against the type of the place where it occurs and notes its bind markers.
/// `spec_name` names the place in messages and in the specs of markers: the column's name, or
/// `[ttl]`, `[timestamp]`, `[limit]`.
///
/// # Errors
/// If the term can't be of that type.
pub fn prepare_term(
    term: &Term,
    cql_type: &CqlType,
    spec_name: &str,
    ctx: &mut PrepareContext,
) -> Result<PreparedTerm, CqlError> {
    let node = match (term, cql_type) {
        (Term::Marker(marker), _) => {
            ctx.note(marker, spec_name, cql_type);
            TermNode::Marker(marker.index)
        }
        (Term::Null, _) => TermNode::Constant(TermValue::Null),
        (Term::Function(call), _) => function(call, cql_type, spec_name, ctx)?,
        (
            Term::TypeHint {
                data_type: hint,
                term: inner,
            },
            _,
        ) => {
            let hint = ctx.type_of(hint)?;
            type_hint(term, &hint, inner, cql_type, spec_name, ctx)?
        }
        (Term::Tuple(terms), CqlType::Tuple(types)) => {
            tuple(terms, types, cql_type, spec_name, ctx)?
        }
        (Term::Tuple(terms), _) if terms.len() == 1 => {
            return prepare_term(&terms[0], cql_type, spec_name, ctx);
        }
        (Term::Literal(literal), _) => constant(literal, cql_type, spec_name)?,
        (
            Term::List(terms),
            CqlType::Vector {
                element,
                dimensions,
            },
        ) => {
            if terms.len() != usize::from(*dimensions) {
                return Err(CqlError::invalid(format!(
                    "Invalid vector literal for {spec_name} of type {cql_type}; expected \
                     {dimensions} elements, but given {}",
                    terms.len()
                )));
            }
            elements("vector", terms, element, spec_name, ctx)?
        }
        (Term::List(terms), CqlType::List { element, .. }) => {
            elements("list", terms, element, spec_name, ctx)?
        }
        (Term::Set(terms), CqlType::Set { element, .. }) => {
            elements("set", terms, element, spec_name, ctx)?
        }
        (Term::Map(entries), CqlType::Map { key, value, .. }) => {
            map(entries, key, value, spec_name, ctx)?
        }
        (Term::Set(terms), CqlType::Map { .. }) if terms.is_empty() => {
            TermNode::Entries(Vec::new())
        }
        (Term::UserType(fields), CqlType::UserType { definition, .. }) => {
            user_type(fields, definition, spec_name, ctx)?
        }
        (Term::List(_), _) => return Err(misplaced("list", spec_name, cql_type)),
        (Term::Set(_), _) => return Err(misplaced("set", spec_name, cql_type)),
        (Term::Map(_), _) => return Err(misplaced("map", spec_name, cql_type)),
        (Term::UserType(_), _) => return Err(misplaced("user type", spec_name, cql_type)),
        (Term::Tuple(_), _) => return Err(misplaced("tuple type", spec_name, cql_type)),
    };
    PreparedTerm {
        cql_type: cql_type.clone(),
        name: spec_name.to_owned(),
        node,
    }
    .folded()
}

/// Prepares values in parentheses for several columns at once: `(?, 1)` in `(a, b) > (?, 1)`. Each
/// value is prepared as by [`prepare_term`], under the name of its column. `columns` are (name,
/// type).
///
/// # Errors
/// If a value can't be of its column's type, or there are not as many values as columns.
pub fn prepare_row(
    terms: &[Term],
    columns: &[(&str, &CqlType)],
    ctx: &mut PrepareContext,
) -> Result<PreparedTerm, CqlError> {
    let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
    let name = format!("({})", names.join(","));
    if terms.len() != columns.len() {
        return Err(CqlError::invalid(format!(
            "Expected {} elements in value tuple for {name}, but got {}",
            columns.len(),
            terms.len(),
        )));
    }
    let elements = terms
        .iter()
        .zip(columns)
        .map(|(term, (name, cql_type))| prepare_term(term, cql_type, name, ctx))
        .collect::<Result<_, _>>()?;
    let types = columns.iter().map(|(_, cql_type)| (*cql_type).clone());
    PreparedTerm {
        cql_type: CqlType::Tuple(types.collect()),
        name,
        node: TermNode::Elements(elements),
    }
    .folded()
}

impl PreparedTerm {
    /// Evaluates the term to a constant if everything in it is known before execution.
    fn folded(self) -> Result<Self, CqlError> {
        let constant = |term: &PreparedTerm| term.constant().is_some();
        let foldable = match &self.node {
            TermNode::Constant(_) | TermNode::Marker(_) | TermNode::Hinted(_) => false,
            TermNode::Elements(terms) | TermNode::Fields(terms) => terms.iter().all(constant),
            TermNode::Entries(entries) => entries.iter().all(|(k, v)| constant(k) && constant(v)),
            TermNode::Function {
                function,
                arguments,
            } => function.is_foldable && arguments.iter().all(constant),
        };
        if !foldable {
            return Ok(self);
        }
        let bound = self.evaluate(&[], &StatementClock::of_none())?;
        Ok(PreparedTerm {
            node: TermNode::Constant(bound),
            ..self
        })
    }
}

fn constant(literal: &Literal, cql_type: &CqlType, name: &str) -> Result<TermNode, CqlError> {
    if functions::literal_assignability(literal, cql_type) == Assignability::No {
        return Err(CqlError::invalid(format!(
            "Invalid {} constant ({}) for \"{name}\" of type {cql_type}",
            literal_kind(literal),
            literal_text(literal)
        )));
    }
    from_literal(cql_type, literal)
        .map(|bytes| TermNode::Constant(TermValue::Value(bytes)))
        .map_err(|error| invalid_value(name, &error.0))
}

/// The error for bytes that are no value of the type of their place.
pub(super) fn invalid_value(name: &str, reason: &str) -> CqlError {
    CqlError::invalid(format!("Invalid value for {name}: {reason}"))
}

fn misplaced(kind: &str, name: &str, cql_type: &CqlType) -> CqlError {
    CqlError::invalid(match kind {
        "list" => {
            format!("Unexpected receiver type '{cql_type}'; only list and vector are expected")
        }
        _ => format!("Invalid {kind} literal for {name} of type {cql_type}"),
    })
}

fn elements(
    kind: &str,
    terms: &[Term],
    element: &CqlType,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<TermNode, CqlError> {
    let place = format!("value({name})");
    terms
        .iter()
        .map(|term| part(kind, "value", term, element, &place, name, ctx))
        .collect::<Result<_, _>>()
        .map(TermNode::Elements)
}

fn map(
    entries: &[(Term, Term)],
    key: &CqlType,
    value: &CqlType,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<TermNode, CqlError> {
    let (key_place, value_place) = (format!("key({name})"), format!("value({name})"));
    entries
        .iter()
        .map(|(k, v)| {
            Ok((
                part("map", "key", k, key, &key_place, name, ctx)?,
                part("map", "value", v, value, &value_place, name, ctx)?,
            ))
        })
        .collect::<Result<_, _>>()
        .map(TermNode::Entries)
}

/// Prepares an element, key or value of a collection or vector.
fn part(
    kind: &str,
    role: &str,
    term: &Term,
    cql_type: &CqlType,
    place: &str,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<PreparedTerm, CqlError> {
    // `(null)` is a tuple with a null where the type is a tuple.
    let is_tuple = matches!((term, cql_type), (Term::Tuple(_), CqlType::Tuple(_)));
    if !is_tuple && *term.without_parentheses() == Term::Null {
        return Err(null_inside(kind, name));
    }
    if let Term::Literal(literal) = term
        && functions::literal_assignability(literal, cql_type) == Assignability::No
    {
        return Err(CqlError::invalid(format!(
            "Invalid {kind} literal for {name}: {role} {} is not of type {cql_type}",
            term_text(term)
        )));
    }
    prepare_term(term, cql_type, place, ctx)
}

/// The error for a null in a collection or vector.
pub(super) fn null_inside(kind: &str, name: &str) -> CqlError {
    let place = if kind == "vector" {
        "vectors"
    } else {
        "collections"
    };
    CqlError::invalid(format!(
        "null is not supported inside {place} (column {name})"
    ))
}

fn tuple(
    terms: &[Term],
    types: &[CqlType],
    cql_type: &CqlType,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<TermNode, CqlError> {
    // Elements that are left out at the end are null.
    if terms.len() > types.len() {
        return Err(CqlError::invalid(format!(
            "Invalid tuple literal for {name}: too many elements. Type {cql_type} expects {} but \
             got {}",
            types.len(),
            terms.len()
        )));
    }
    terms
        .iter()
        .zip(types)
        .enumerate()
        .map(|(position, (term, cql_type))| {
            if let Term::Literal(literal) = term
                && functions::literal_assignability(literal, cql_type) == Assignability::No
            {
                return Err(CqlError::invalid(format!(
                    "Invalid tuple literal for {name}: component {position} is not of type {cql_type}"
                )));
            }
            prepare_term(term, cql_type, &format!("{name}[{position}]"), ctx)
        })
        .collect::<Result<_, _>>()
        .map(TermNode::Elements)
}

/// Prepares the fields of a literal. A field that is left out is null. Of a field that is written
/// twice, the last stays.
fn user_type(
    fields: &[(String, Term)],
    definition: &UserType,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<TermNode, CqlError> {
    if let Some((unknown, _)) = fields
        .iter()
        .find(|(field, _)| definition.position(field).is_none())
    {
        return Err(CqlError::invalid(format!(
            "Unknown field '{unknown}' in value of user defined type {}",
            Identifier(&definition.name)
        )));
    }
    definition
        .fields()
        .map(|(field, cql_type)| {
            let place = format!("{name}.{field}");
            let written = fields.iter().rev().find(|(written, _)| written == field);
            let term = written.map_or(&Term::Null, |(_, term)| term);
            if let Term::Literal(literal) = term
                && functions::literal_assignability(literal, cql_type) == Assignability::No
            {
                return Err(CqlError::invalid(format!(
                    "Invalid user type literal for {name}: field {field} is not of type {cql_type}"
                )));
            }
            prepare_term(term, cql_type, &place, ctx)
        })
        .collect::<Result<_, _>>()
        .map(TermNode::Fields)
}

fn function(
    call: &FunctionCall<Term>,
    cql_type: &CqlType,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<TermNode, CqlError> {
    let arguments: Vec<CallArgument<'_>> = call.arguments.iter().map(CallArgument::Term).collect();
    let function = match &ctx.key {
        Some(key) if functions::is_token(call) => key.function(&arguments)?,
        _ => functions::resolve(
            call.keyspace.as_deref(),
            &call.name,
            &arguments,
            Some(cql_type),
        )?,
    };
    if functions::type_assignability(&function.return_type, cql_type) == Assignability::No {
        return Err(CqlError::invalid(format!(
            "Type error: cannot assign result of function {} (type {}) to {name} (type {cql_type})",
            function.full_name(),
            function.return_type
        )));
    }
    let arguments = call
        .arguments
        .iter()
        .zip(&function.argument_types)
        .enumerate()
        .map(|(index, (term, cql_type))| {
            prepare_term(term, cql_type, &function.argument_name(index), ctx)
        })
        .collect::<Result<_, _>>()?;
    Ok(TermNode::Function {
        function,
        arguments,
    })
}

fn type_hint(
    term: &Term,
    hint: &CqlType,
    inner: &Term,
    cql_type: &CqlType,
    name: &str,
    ctx: &mut PrepareContext,
) -> Result<TermNode, CqlError> {
    if functions::assignability(inner, hint) == Assignability::No {
        return Err(CqlError::invalid(format!(
            "Cannot cast value {} to type {hint}",
            term_text(inner)
        )));
    }
    if functions::type_assignability(hint, cql_type) == Assignability::No {
        return Err(CqlError::invalid(format!(
            "Cannot assign value {} to {name} of type {cql_type}",
            term_text(term)
        )));
    }
    let inner = prepare_term(inner, hint, name, ctx)?;
    Ok(match inner.node {
        TermNode::Constant(bound) => TermNode::Constant(bound),
        _ => TermNode::Hinted(Box::new(inner)),
    })
}
