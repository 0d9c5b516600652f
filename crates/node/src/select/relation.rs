//! One conjunct of a WHERE clause, with its names and types settled.

use std::cmp::Ordering;
use std::fmt;

use cql::ast::{self, Comparand, Operator, Subject, Term};
use cql::error::CqlError;
use cql::types::CqlType;
use storage::catalog::{Column, ColumnKind, Table};

use super::target;
use crate::bind::{PrepareContext, PreparedInList, PreparedTerm, prepare_in_list, prepare_term};
use crate::functions::term_text;

/// A relation whose terms fit its columns.
#[derive(Clone, Debug)]
pub(super) struct Relation {
    /// As CQL, for messages and printed plans.
    pub text: String,
    pub kind: RelationKind,
}

#[derive(Clone, Debug)]
pub(super) enum RelationKind {
    Column {
        column: Column,
        test: Test,
    },
    /// `map[key] = value`.
    Entry {
        column: Column,
        key: PreparedTerm,
        value: PreparedTerm,
    },
    /// Successive clustering columns together.
    Tuple {
        columns: Vec<Column>,
        test: TupleTest,
    },
    /// The token of the partition.
    Token {
        comparison: Comparison,
        value: TokenTerm,
    },
}

/// What is asked of one column.
#[derive(Clone, Debug)]
pub(super) enum Test {
    Compare(Comparison, PreparedTerm),
    In(PreparedInList),
    Contains(PreparedTerm),
    ContainsKey(PreparedTerm),
}

/// What is asked of several columns.
#[derive(Clone, Debug)]
pub(super) enum TupleTest {
    Compare(Comparison, TupleTerm),
    In(TupleList),
}

/// The value of a tuple of columns.
#[derive(Clone, Debug)]
pub(super) enum TupleTerm {
    /// One a column.
    Terms(Vec<PreparedTerm>),
    /// One marker for the tuple.
    Whole(PreparedTerm),
}

/// The right side of `(a, b) IN ...`.
#[derive(Clone, Debug)]
pub(super) enum TupleList {
    Terms(Vec<TupleTerm>),
    /// One marker for the list.
    Whole(PreparedTerm),
}

/// What a token is compared with.
#[derive(Clone, Debug)]
pub(super) enum TokenTerm {
    Value(PreparedTerm),
    /// `token(a, b)` of values of the partition key.
    Of(Vec<PreparedTerm>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Comparison {
    Eq,
    Lt,
    LtEq,
    Gt,
    GtEq,
}

impl Comparison {
    fn of(operator: Operator) -> Option<Comparison> {
        Some(match operator {
            Operator::Eq => Comparison::Eq,
            Operator::Lt => Comparison::Lt,
            Operator::LtEq => Comparison::LtEq,
            Operator::Gt => Comparison::Gt,
            Operator::GtEq => Comparison::GtEq,
            _ => return None,
        })
    }

    /// Whether it holds for a left side that lies so to the right side.
    pub(super) fn accepts(self, order: Ordering) -> bool {
        match self {
            Comparison::Eq => order.is_eq(),
            Comparison::Lt => order.is_lt(),
            Comparison::LtEq => order.is_le(),
            Comparison::Gt => order.is_gt(),
            Comparison::GtEq => order.is_ge(),
        }
    }

    /// For a bound from below, whether it includes its value.
    pub(super) fn as_lower(self) -> Option<bool> {
        match self {
            Comparison::Gt => Some(false),
            Comparison::GtEq => Some(true),
            _ => None,
        }
    }

    /// For a bound from above, whether it includes its value.
    pub(super) fn as_upper(self) -> Option<bool> {
        match self {
            Comparison::Lt => Some(false),
            Comparison::LtEq => Some(true),
            _ => None,
        }
    }
}

fn operator_text(operator: Operator) -> &'static str {
    match operator {
        Operator::Eq => "=",
        Operator::NotEq => "!=",
        Operator::Lt => "<",
        Operator::LtEq => "<=",
        Operator::Gt => ">",
        Operator::GtEq => ">=",
        Operator::In => "IN",
        Operator::NotIn => "NOT IN",
        Operator::Contains => "CONTAINS",
        Operator::ContainsKey => "CONTAINS KEY",
        Operator::Like => "LIKE",
        Operator::IsNotNull => "IS NOT NULL",
    }
}

impl fmt::Display for Relation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Relation {
    /// Whether it is on exactly this column.
    pub(super) fn is_on(&self, name: &str) -> bool {
        match &self.kind {
            RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
                column.name == name
            }
            RelationKind::Tuple { columns, .. } => columns.iter().any(|column| column.name == name),
            RelationKind::Token { .. } => false,
        }
    }

    /// The first column that it is on; `None` for a token.
    pub(super) fn first_column(&self) -> Option<&Column> {
        match &self.kind {
            RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
                Some(column)
            }
            RelationKind::Tuple { columns, .. } => columns.first(),
            RelationKind::Token { .. } => None,
        }
    }
}

/// Settles the names and types of a relation.
pub(super) fn prepare(
    table: &Table,
    relation: &ast::Relation,
    ctx: &mut PrepareContext,
) -> Result<Relation, CqlError> {
    let text = relation_text(relation);
    refuse_operator(relation.operator, &text)?;
    let kind = match &relation.subject {
        Subject::Column(name) => {
            let column = target::column(table, name)?;
            RelationKind::Column {
                test: column_test(column, relation, ctx)?,
                column: column.clone(),
            }
        }
        Subject::Element { column, key } => {
            entry(target::column(table, column)?, key, relation, ctx)?
        }
        Subject::Tuple(names) => tuple(table, names, relation, &text, ctx)?,
        Subject::Token(names) => token(table, names, relation, ctx)?,
        Subject::Function(call) => {
            return Err(CqlError::invalid(format!(
                "Unsupported restriction: {text}: function {} is not supported in WHERE",
                call.name
            )));
        }
    };
    Ok(Relation { text, kind })
}

fn refuse_operator(operator: Operator, text: &str) -> Result<(), CqlError> {
    let message = match operator {
        Operator::NotEq | Operator::NotIn => format!(
            "Unsupported \"{}\" relation: {text}",
            operator_text(operator)
        ),
        Operator::Like => format!(
            "LIKE restriction is only supported on properly indexed columns. {text} is not valid."
        ),
        Operator::IsNotNull => format!("Unsupported restriction: {text}"),
        _ => return Ok(()),
    };
    Err(CqlError::invalid(message))
}

/// The one term on the right side.
fn single_term<'a>(relation: &'a ast::Relation, name: &str) -> Result<&'a Term, CqlError> {
    match &relation.comparand {
        Comparand::Term(term) => Ok(term),
        Comparand::List(_) | Comparand::None => Err(CqlError::invalid(format!(
            "{} on {name} needs one value",
            operator_text(relation.operator)
        ))),
    }
}

fn column_test(
    column: &Column,
    relation: &ast::Relation,
    ctx: &mut PrepareContext,
) -> Result<Test, CqlError> {
    let (name, cql_type) = (column.name.as_str(), &column.cql_type);
    let operator = relation.operator;
    match operator {
        Operator::Contains | Operator::ContainsKey => {
            let (part, place) = contained_part(column, operator)?;
            let term = prepare_term(single_term(relation, name)?, &part, &place, ctx)?;
            return Ok(if operator == Operator::Contains {
                Test::Contains(term)
            } else {
                Test::ContainsKey(term)
            });
        }
        _ if cql_type.is_multi_cell() => {
            return Err(CqlError::invalid(format!(
                "Collection column '{name}' ({cql_type}) cannot be restricted by a '{}' relation",
                operator_text(operator)
            )));
        }
        _ => {}
    }
    match Comparison::of(operator) {
        None => prepare_in_list(&relation.comparand, cql_type, name, ctx).map(Test::In),
        Some(comparison) => {
            if comparison != Comparison::Eq && *cql_type == CqlType::Duration {
                return Err(CqlError::invalid(
                    "Slice restrictions are not supported on duration columns",
                ));
            }
            let term = prepare_term(single_term(relation, name)?, cql_type, name, ctx)?;
            Ok(Test::Compare(comparison, term))
        }
    }
}

/// The type and the name of what a collection is asked to contain.
fn contained_part(column: &Column, operator: Operator) -> Result<(CqlType, String), CqlError> {
    let name = &column.name;
    match (&column.cql_type, operator) {
        (CqlType::Map { key, .. }, Operator::ContainsKey) => {
            Ok(((**key).clone(), format!("key({name})")))
        }
        (_, Operator::ContainsKey) => Err(CqlError::invalid(format!(
            "Cannot use CONTAINS KEY on non-map column {name}"
        ))),
        (
            CqlType::List { element: part, .. }
            | CqlType::Set { element: part, .. }
            | CqlType::Map { value: part, .. },
            _,
        ) => Ok(((**part).clone(), format!("value({name})"))),
        _ => Err(CqlError::invalid(format!(
            "Cannot use CONTAINS on non-collection column {name}"
        ))),
    }
}

fn entry(
    column: &Column,
    key: &Term,
    relation: &ast::Relation,
    ctx: &mut PrepareContext,
) -> Result<RelationKind, CqlError> {
    let name = &column.name;
    let CqlType::Map {
        key: key_type,
        value: value_type,
        ..
    } = &column.cql_type
    else {
        return Err(CqlError::invalid(match column.cql_type {
            CqlType::List { .. } => format!(
                "Indexes on list entries ({name}[index] = value) are not currently supported."
            ),
            _ => format!("Column {name} cannot be used as a map"),
        }));
    };
    if relation.operator != Operator::Eq {
        return Err(CqlError::invalid(
            "Only EQ relations are supported on map entries",
        ));
    }
    Ok(RelationKind::Entry {
        key: prepare_term(key, key_type, &format!("key({name})"), ctx)?,
        value: prepare_term(
            single_term(relation, name)?,
            value_type,
            &format!("value({name})"),
            ctx,
        )?,
        column: column.clone(),
    })
}

fn tuple(
    table: &Table,
    names: &[String],
    relation: &ast::Relation,
    text: &str,
    ctx: &mut PrepareContext,
) -> Result<RelationKind, CqlError> {
    let columns = tuple_columns(table, names, text)?;
    let test = match Comparison::of(relation.operator) {
        Some(comparison) => {
            let term = single_term(relation, text)?;
            TupleTest::Compare(comparison, tuple_term(&columns, term, ctx)?)
        }
        None if relation.operator == Operator::In => {
            TupleTest::In(tuple_list(&columns, &relation.comparand, text, ctx)?)
        }
        None => {
            return Err(CqlError::invalid(format!(
                "{} cannot be used for multi-column relations",
                operator_text(relation.operator)
            )));
        }
    };
    Ok(RelationKind::Tuple { columns, test })
}

/// Successive clustering columns.
fn tuple_columns(table: &Table, names: &[String], text: &str) -> Result<Vec<Column>, CqlError> {
    let mut columns: Vec<Column> = Vec::with_capacity(names.len());
    let mut previous: Option<usize> = None;
    for name in names {
        let column = target::column(table, name)?;
        let ColumnKind::Clustering { position, .. } = column.kind else {
            return Err(CqlError::invalid(format!(
                "Multi-column relations can only be applied to clustering columns but was applied to: {name}"
            )));
        };
        if columns.iter().any(|seen| seen.id == column.id) {
            return Err(CqlError::invalid(format!(
                "Column \"{name}\" appeared twice in a relation: {text}"
            )));
        }
        if previous.is_some_and(|previous| position != previous + 1) {
            return Err(CqlError::invalid(format!(
                "Clustering columns must appear in the PRIMARY KEY order in multi-column relations: {text}"
            )));
        }
        previous = Some(position);
        columns.push(column.clone());
    }
    Ok(columns)
}

fn tuple_type(columns: &[Column]) -> CqlType {
    CqlType::Tuple(
        columns
            .iter()
            .map(|column| column.cql_type.clone())
            .collect(),
    )
}

fn tuple_name(columns: &[Column]) -> String {
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    format!("({})", names.join(","))
}

fn tuple_term(
    columns: &[Column],
    term: &Term,
    ctx: &mut PrepareContext,
) -> Result<TupleTerm, CqlError> {
    let terms = match term {
        Term::Tuple(terms) => terms.as_slice(),
        Term::Marker(_) => {
            return prepare_term(term, &tuple_type(columns), &tuple_name(columns), ctx)
                .map(TupleTerm::Whole);
        }
        // One value in parentheses is parsed as the value.
        _ => std::slice::from_ref(term),
    };
    if terms.len() != columns.len() {
        return Err(CqlError::invalid(format!(
            "Expected {} elements in value tuple, but got {}: {}",
            columns.len(),
            terms.len(),
            term_text(term)
        )));
    }
    terms
        .iter()
        .zip(columns)
        .map(|(term, column)| prepare_term(term, &column.cql_type, &column.name, ctx))
        .collect::<Result<_, _>>()
        .map(TupleTerm::Terms)
}

fn tuple_list(
    columns: &[Column],
    comparand: &Comparand,
    text: &str,
    ctx: &mut PrepareContext,
) -> Result<TupleList, CqlError> {
    match comparand {
        Comparand::List(terms) => terms
            .iter()
            .map(|term| tuple_term(columns, term, ctx))
            .collect::<Result<_, _>>()
            .map(TupleList::Terms),
        Comparand::Term(term) => {
            let list = CqlType::List {
                element: Box::new(tuple_type(columns)),
                frozen: false,
            };
            let name = format!("in{}", tuple_name(columns));
            prepare_term(term, &list, &name, ctx).map(TupleList::Whole)
        }
        Comparand::None => Err(CqlError::invalid(format!("IN needs values: {text}"))),
    }
}

fn token(
    table: &Table,
    names: &[String],
    relation: &ast::Relation,
    ctx: &mut PrepareContext,
) -> Result<RelationKind, CqlError> {
    for name in names {
        target::column(table, name)?;
    }
    let key = table.partition_key();
    if names.len() != key.len() || !key.iter().all(|column| names.contains(&column.name)) {
        return Err(CqlError::invalid(
            "The token() function must be applied to all partition key components or none of them",
        ));
    }
    if !key
        .iter()
        .zip(names)
        .all(|(column, name)| column.name == *name)
    {
        let order: Vec<&str> = key.iter().map(|column| column.name.as_str()).collect();
        return Err(CqlError::invalid(format!(
            "The token function arguments must be in the partition key order: {}",
            order.join(", ")
        )));
    }
    let Some(comparison) = Comparison::of(relation.operator) else {
        return Err(CqlError::invalid(format!(
            "{} cannot be used with the token function",
            operator_text(relation.operator)
        )));
    };
    let value = match single_term(relation, "token()")? {
        Term::Function(call) if call.name == "token" => {
            TokenTerm::Of(token_arguments(&key, &call.arguments, ctx)?)
        }
        term => TokenTerm::Value(prepare_term(
            term,
            &CqlType::Bigint,
            "partition key token",
            ctx,
        )?),
    };
    Ok(RelationKind::Token { comparison, value })
}

/// Prepares the arguments of `token(...)`, which are values of the partition key's columns.
fn token_arguments(
    key: &[&Column],
    arguments: &[Term],
    ctx: &mut PrepareContext,
) -> Result<Vec<PreparedTerm>, CqlError> {
    if arguments.len() != key.len() {
        return Err(CqlError::invalid(format!(
            "Invalid number of arguments in call to function system.token: {} required but {} provided",
            key.len(),
            arguments.len()
        )));
    }
    arguments
        .iter()
        .zip(key)
        .enumerate()
        .map(|(index, (term, column))| {
            let name = format!("arg{index}(system.token)");
            prepare_term(term, &column.cql_type, &name, ctx)
        })
        .collect()
}

fn relation_text(relation: &ast::Relation) -> String {
    let subject = match &relation.subject {
        Subject::Column(name) => name.clone(),
        Subject::Element { column, key } => format!("{column}[{}]", term_text(key)),
        Subject::Tuple(names) => format!("({})", names.join(", ")),
        Subject::Token(names) => format!("token({})", names.join(", ")),
        Subject::Function(call) => format!("{}(...)", call.name),
    };
    let operator = operator_text(relation.operator);
    match &relation.comparand {
        Comparand::Term(term) => format!("{subject} {operator} {}", term_text(term)),
        Comparand::List(terms) => {
            let terms: Vec<String> = terms.iter().map(term_text).collect();
            format!("{subject} {operator} ({})", terms.join(", "))
        }
        Comparand::None => format!("{subject} {operator}"),
    }
}
