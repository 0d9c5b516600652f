//! Selectors that put values together: `(a, b)`, `[a, b]`, `{a, b}`, `{k: v}`, `(type) a`.
//!
//! A tuple has the types of its parts, and a list or a set that of its first part whose type is
//! known. A map, a vector and a user type are known only by the type that is wanted in their place,
//! which a hint or a function gives.

use cql::ast::{Selector, Term};
use cql::error::CqlError;
use query::functions::{Assignability, own_type, type_assignability};
use value::{CqlType, UserType};

use super::expression::{CompositeExpression, CompositeKind, Expression};
use super::names::{no_type, selector_excerpt};
use super::projection::ExpressionBuilder;

impl ExpressionBuilder<'_> {
    /// Resolves `(a, b)` where no type is wanted.
    ///
    /// # Errors
    /// Parts that have no type by themselves, and those that fail.
    pub(super) fn tuple(
        &mut self,
        whole: &Selector,
        parts: &[Selector],
    ) -> Result<(Expression, CqlType), CqlError> {
        let mut expressions = Vec::new();
        let mut types = Vec::new();
        for part in parts {
            if let Selector::Term(term) = part
                && !is_typed(term)
            {
                return Err(no_type(whole));
            }
            let (expression, cql_type) = self.selector(part)?;
            expressions.push(expression);
            types.push(cql_type);
        }
        let tuple = composed(whole, CompositeKind::Tuple, expressions);
        Ok((tuple, CqlType::Tuple(types)))
    }

    /// Resolves `[a, b]` or `{a, b}` where no type is wanted.
    ///
    /// # Errors
    /// Parts of several types, a set of durations, and parts that fail.
    pub(super) fn elements_of_one_type(
        &mut self,
        whole: &Selector,
        parts: &[Selector],
        is_set: bool,
    ) -> Result<(Expression, CqlType), CqlError> {
        let mut found = None;
        let mut resolved = Vec::with_capacity(parts.len());
        for part in parts {
            let typed = match part {
                Selector::Term(term) if !is_typed(term) => None,
                part => Some(self.selector(part)?),
            };
            if found.is_none() {
                found = typed.as_ref().map(|(_, cql_type)| cql_type.clone());
            }
            resolved.push(typed);
        }
        let Some(element) = found else {
            return Err(no_type(whole));
        };
        if is_set && element == CqlType::Duration {
            return Err(CqlError::invalid(
                "Durations are not allowed inside sets: frozen<set<duration>>",
            ));
        }
        let mut expressions = Vec::with_capacity(parts.len());
        for (typed, part) in resolved.into_iter().zip(parts) {
            expressions.push(match typed {
                Some((expression, cql_type)) => {
                    check_type(part, &cql_type, &element)?;
                    expression
                }
                None => self.wanted(part, &element)?,
            });
        }
        let (boxed, frozen) = (Box::new(element.clone()), false);
        let (form, cql_type) = match is_set {
            false => (
                CompositeKind::List,
                CqlType::List {
                    element: boxed,
                    frozen,
                },
            ),
            true => (
                CompositeKind::Set(element),
                CqlType::Set {
                    element: boxed,
                    frozen,
                },
            ),
        };
        Ok((composed(whole, form, expressions), cql_type))
    }

    /// Resolves a selector where a type is wanted.
    ///
    /// # Errors
    /// Selectors of another type, and those that fail.
    pub(super) fn wanted(
        &mut self,
        selector: &Selector,
        wanted: &CqlType,
    ) -> Result<Expression, CqlError> {
        let (form, parts) = match (selector, wanted) {
            (Selector::Term(term), _) => return self.term(term, wanted),
            (Selector::List(parts), CqlType::List { element, .. }) => {
                (CompositeKind::List, self.all_wanted(parts, element)?)
            }
            (
                Selector::List(parts),
                CqlType::Vector {
                    element,
                    dimensions,
                },
            ) if parts.len() == usize::from(*dimensions) => {
                let form = CompositeKind::Vector((**element).clone());
                (form, self.all_wanted(parts, element)?)
            }
            (Selector::Set(parts), CqlType::Set { element, .. }) => {
                let form = CompositeKind::Set((**element).clone());
                (form, self.all_wanted(parts, element)?)
            }
            (Selector::Tuple(parts), CqlType::Tuple(types)) if parts.len() <= types.len() => {
                let parts = parts.iter().zip(types);
                let parts = parts.map(|(part, cql_type)| self.wanted(part, cql_type));
                (CompositeKind::Tuple, parts.collect::<Result<_, _>>()?)
            }
            (Selector::Entries(entries), CqlType::Map { key, value, .. }) => {
                let mut parts = Vec::with_capacity(2 * entries.len());
                for (of_key, of_value) in entries {
                    parts.push(self.wanted(of_key, key)?);
                    parts.push(self.wanted(of_value, value)?);
                }
                (CompositeKind::Map((**key).clone()), parts)
            }
            (Selector::Entries(entries), CqlType::UserType { definition, .. }) => {
                (CompositeKind::Tuple, self.fields(entries, definition)?)
            }
            _ => {
                let (expression, cql_type) = self.selector(selector)?;
                check_type(selector, &cql_type, wanted)?;
                return Ok(expression);
            }
        };
        Ok(composed(selector, form, parts))
    }

    fn all_wanted(
        &mut self,
        parts: &[Selector],
        wanted: &CqlType,
    ) -> Result<Vec<Expression>, CqlError> {
        parts.iter().map(|part| self.wanted(part, wanted)).collect()
    }

    /// The fields of a user type in their order. Those that are not named are null.
    fn fields(
        &mut self,
        entries: &[(Selector, Selector)],
        definition: &UserType,
    ) -> Result<Vec<Expression>, CqlError> {
        for (field, _) in entries {
            let known = match field {
                Selector::Column(name) => definition.position(name),
                _ => None,
            };
            if known.is_none() {
                return Err(CqlError::invalid(format!(
                    "Unknown field '{}' in value of user defined type {}",
                    selector_excerpt(field),
                    definition.name
                )));
            }
        }
        let fields = definition.field_names.iter().zip(&definition.field_types);
        fields
            .map(|(name, cql_type)| {
                let given = entries
                    .iter()
                    .rfind(|(field, _)| matches!(field, Selector::Column(field) if field == name));
                match given {
                    Some((_, value)) => self.wanted(value, cql_type),
                    None => self.term(&Term::Null, cql_type),
                }
            })
            .collect()
    }
}

/// Whether a term has a type by itself in a composed value, where literals have none.
fn is_typed(term: &Term) -> bool {
    !matches!(term.without_parentheses(), Term::Literal(_)) && own_type(term).is_some()
        || matches!(term, Term::TypeHint { .. })
}

fn composed(whole: &Selector, form: CompositeKind, parts: Vec<Expression>) -> Expression {
    Expression::Composed(CompositeExpression {
        form,
        parts,
        text: selector_excerpt(whole),
    })
}

fn check_type(selector: &Selector, own: &CqlType, wanted: &CqlType) -> Result<(), CqlError> {
    match type_assignability(own, wanted) {
        Assignability::No => Err(CqlError::invalid(format!(
            "Cannot assign value {0} to {0} of type {wanted}",
            selector_excerpt(selector)
        ))),
        Assignability::Weak | Assignability::Exact => Ok(()),
    }
}
