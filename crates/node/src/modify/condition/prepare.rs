//! Preparation of IF clauses.

use cql::ast::{self, Comparand, ComparisonSubject, Operator, Relation};
use cql::error::CqlError;
use query::bind::{PrepareContext, PreparedTerm, prepare_in_list, prepare_term};
use query::resolve;
use schema::{Column, Table};
use value::CqlType;
use value::predicate::ComparisonOperator;

use super::{ColumnCondition, PartTest, PreparedCondition, TestedPart};
use crate::modify::operation::is_key;

impl PreparedCondition {
    /// Prepares the IF clause of a statement on this table.
    ///
    /// # Errors
    /// Columns that are unknown or of the primary key, parts that the types don't have, terms that
    /// don't fit, and relations that a condition can't have.
    pub fn prepare(
        table: &Table,
        condition: Option<&ast::IfClause>,
        ctx: &mut PrepareContext,
    ) -> Result<Option<PreparedCondition>, CqlError> {
        Ok(match condition {
            None => None,
            Some(ast::IfClause::Exists) => Some(PreparedCondition::Exists),
            Some(ast::IfClause::NotExists) => Some(PreparedCondition::NotExists),
            Some(ast::IfClause::Relations(relations)) => {
                let relations = relations.iter();
                let columns = relations.map(|relation| of_relation(table, relation, ctx));
                Some(PreparedCondition::Columns(
                    columns.collect::<Result<_, _>>()?,
                ))
            }
        })
    }
}

fn of_relation(
    table: &Table,
    relation: &Relation,
    ctx: &mut PrepareContext,
) -> Result<ColumnCondition, CqlError> {
    let (name, part) = match &relation.subject {
        ComparisonSubject::Column(name) => (name, None),
        ComparisonSubject::Element { column, .. } | ComparisonSubject::Field { column, .. } => {
            (column, Some(&relation.subject))
        }
        ComparisonSubject::Tuple(_)
        | ComparisonSubject::Token(_)
        | ComparisonSubject::Function(_) => {
            return Err(CqlError::syntax(
                "A condition of IF is on one column, element or field, not on a tuple or a function",
            ));
        }
    };
    let column = resolve::column(table, name)?;
    if is_key(column) {
        return Err(CqlError::invalid(format!(
            "PRIMARY KEY column '{name}' cannot have IF conditions"
        )));
    }
    let (part, tested) = match part {
        None => (
            TestedPart::Whole,
            LeftOperand {
                cql_type: column.cql_type.clone(),
                name: name.clone(),
                is_whole: true,
            },
        ),
        Some(subject) => part_of(column, subject, ctx)?,
    };
    let test = tested.test(relation, ctx)?;
    Ok(ColumnCondition {
        column: column.clone(),
        part,
        test,
    })
}

/// The part that an element or a field refers to.
fn part_of(
    column: &Column,
    subject: &ComparisonSubject,
    ctx: &mut PrepareContext,
) -> Result<(TestedPart, LeftOperand), CqlError> {
    let name = &column.name;
    match (subject, &column.cql_type) {
        (ComparisonSubject::Element { key, .. }, CqlType::List { element, .. }) => {
            let index = prepare_term(key, &CqlType::Int, &format!("idx({name})"), ctx)?;
            Ok((
                TestedPart::Index(index),
                LeftOperand::part(element, format!("value({name})")),
            ))
        }
        (
            ComparisonSubject::Element { key, .. },
            CqlType::Map {
                key: key_type,
                value,
                ..
            },
        ) => {
            let key = prepare_term(key, key_type, &format!("key({name})"), ctx)?;
            Ok((
                TestedPart::Key(key),
                LeftOperand::part(value, format!("value({name})")),
            ))
        }
        (ComparisonSubject::Element { .. }, CqlType::Set { .. }) => Err(CqlError::invalid(
            format!("Invalid element access syntax for set column {name}"),
        )),
        (ComparisonSubject::Field { field, .. }, CqlType::UserType { definition, .. }) => {
            let position = definition.position(field).ok_or_else(|| {
                CqlError::invalid(format!("Unknown field {field} for column {name}"))
            })?;
            let tested =
                LeftOperand::part(&definition.field_types[position], format!("{name}.{field}"));
            Ok((TestedPart::Field(position), tested))
        }
        (ComparisonSubject::Field { field, .. }, other) => Err(CqlError::invalid(format!(
            "Invalid field access: column {name} of type {other} has no field {field}"
        ))),
        _ => Err(CqlError::invalid(format!(
            "Invalid element access syntax for non-collection column {name}"
        ))),
    }
}

/// The left side of a relation.
struct LeftOperand {
    cql_type: CqlType,
    /// The name, as the specs of bind markers have it.
    name: String,
    /// Whether it is a whole column.
    is_whole: bool,
}

impl LeftOperand {
    fn part(cql_type: &CqlType, name: String) -> LeftOperand {
        LeftOperand {
            cql_type: cql_type.clone(),
            name,
            is_whole: false,
        }
    }

    fn test(&self, relation: &Relation, ctx: &mut PrepareContext) -> Result<PartTest, CqlError> {
        let operator = relation.operator;
        match operator {
            Operator::Eq => Ok(PartTest::Equal(self.term(relation, &self.cql_type, ctx)?)),
            Operator::NotEq => Ok(PartTest::NotEqual(self.term(
                relation,
                &self.cql_type,
                ctx,
            )?)),
            Operator::Lt => self.order(ComparisonOperator::Lt, relation, ctx),
            Operator::LtEq => self.order(ComparisonOperator::LtEq, relation, ctx),
            Operator::Gt => self.order(ComparisonOperator::Gt, relation, ctx),
            Operator::GtEq => self.order(ComparisonOperator::GtEq, relation, ctx),
            Operator::In => prepare_in_list(&relation.comparand, &self.cql_type, &self.name, ctx)
                .map(PartTest::In),
            Operator::Contains => {
                let element = match &self.cql_type {
                    CqlType::List { element, .. } | CqlType::Set { element, .. } => element,
                    CqlType::Map { value, .. } => value,
                    _ => return Err(self.not_a("collection", operator)),
                };
                Ok(PartTest::Contains(
                    self.element(relation, element, "value", ctx)?,
                ))
            }
            Operator::ContainsKey => {
                let CqlType::Map { key, .. } = &self.cql_type else {
                    return Err(self.not_a("map", operator));
                };
                Ok(PartTest::ContainsKey(
                    self.element(relation, key, "key", ctx)?,
                ))
            }
            Operator::Like if matches!(self.cql_type, CqlType::Text | CqlType::Ascii) => {
                Ok(PartTest::Like(self.term(relation, &self.cql_type, ctx)?))
            }
            Operator::Like => Err(CqlError::invalid(format!(
                "LIKE is allowed only on string types, which {} is not",
                self.name
            ))),
            Operator::NotIn | Operator::IsNotNull => Err(CqlError::syntax(format!(
                "{} cannot be used in IF; compare with =, !=, <, <=, >, >=, IN, LIKE, CONTAINS \
                     or CONTAINS KEY",
                operator.as_str()
            ))),
        }
    }

    fn order(
        &self,
        comparison: ComparisonOperator,
        relation: &Relation,
        ctx: &mut PrepareContext,
    ) -> Result<PartTest, CqlError> {
        if self.cql_type == CqlType::Duration {
            return Err(CqlError::invalid(format!(
                "Slice conditions ( {} ) are not supported on durations",
                relation.operator.as_str()
            )));
        }
        if self.cql_type.holds_durations() {
            let what = match self.cql_type {
                CqlType::Tuple(_) => "tuples",
                CqlType::UserType { .. } => "UDTs",
                _ => "collections",
            };
            return Err(CqlError::invalid(format!(
                "Slice conditions are not supported on {what} containing durations"
            )));
        }
        let term = self.term(relation, &self.cql_type, ctx)?;
        Ok(PartTest::Order(comparison, term))
    }

    /// The term of CONTAINS, whose spec is named after what it looks for.
    fn element(
        &self,
        relation: &Relation,
        cql_type: &CqlType,
        what: &str,
        ctx: &mut PrepareContext,
    ) -> Result<PreparedTerm, CqlError> {
        if !self.is_whole {
            return Err(CqlError::syntax(format!(
                "{} cannot be used on {}",
                relation.operator.as_str(),
                self.name
            )));
        }
        let name = format!("{what}({})", self.name);
        prepare_term(comparand(relation)?, cql_type, &name, ctx)
    }

    fn term(
        &self,
        relation: &Relation,
        cql_type: &CqlType,
        ctx: &mut PrepareContext,
    ) -> Result<PreparedTerm, CqlError> {
        prepare_term(comparand(relation)?, cql_type, &self.name, ctx)
    }

    fn not_a(&self, what: &str, operator: Operator) -> CqlError {
        CqlError::invalid(format!(
            "Cannot use {} on non-{what} column {}",
            operator.as_str(),
            self.name
        ))
    }
}

fn comparand(relation: &Relation) -> Result<&ast::Term, CqlError> {
    match &relation.comparand {
        Comparand::Term(term) => Ok(term),
        Comparand::List(_) | Comparand::None => Err(CqlError::syntax(format!(
            "{} takes one value",
            relation.operator.as_str()
        ))),
    }
}
