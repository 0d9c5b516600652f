//! Conflicts of relations: a column may have one equality, one IN or two bounds.

use cql::error::CqlError;
use schema::Column;
use value::predicate::ComparisonOperator;

use super::{ColumnTest, PreparedRelation, RelationKind, TupleList, TupleTest};
use crate::bind::PreparedInList;

/// The way in which a relation narrows its columns down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NarrowingKind {
    Equal,
    In,
    Lower,
    Upper,
    /// A collection holds a value, key or entry. Any number of these may occur together.
    Holds,
}

/// Refuses relations that contradict or repeat each other.
///
/// # Errors
/// Two relations on a column that can't occur together, in Cassandra's words.
pub fn check(relations: &[PreparedRelation]) -> Result<(), CqlError> {
    for (position, later) in relations.iter().enumerate() {
        for earlier in &relations[..position] {
            check_pair(earlier, later)?;
        }
    }
    Ok(())
}

fn check_pair(earlier: &PreparedRelation, later: &PreparedRelation) -> Result<(), CqlError> {
    let Some(name) = common_name(earlier, later) else {
        return Ok(());
    };
    let (a, b) = (narrowing(earlier), narrowing(later));
    let fault = match (a, b) {
        (NarrowingKind::Holds, NarrowingKind::Holds) => return Ok(()),
        (NarrowingKind::Holds, _) | (_, NarrowingKind::Holds) => format!(
            "Collection column {name} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality"
        ),
        (NarrowingKind::Equal, _) | (_, NarrowingKind::Equal) => {
            format!("{name} cannot be restricted by more than one relation if it includes an Equal")
        }
        (NarrowingKind::In, _) | (_, NarrowingKind::In) => {
            format!("{name} cannot be restricted by more than one relation if it includes a IN")
        }
        _ if first_name(earlier) != first_name(later) => format!(
            "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
            first_name(later).unwrap_or_default()
        ),
        (NarrowingKind::Lower, NarrowingKind::Lower) => {
            format!("More than one restriction was found for the start bound on {name}")
        }
        (NarrowingKind::Upper, NarrowingKind::Upper) => {
            format!("More than one restriction was found for the end bound on {name}")
        }
        (NarrowingKind::Lower, NarrowingKind::Upper)
        | (NarrowingKind::Upper, NarrowingKind::Lower) => {
            return Ok(());
        }
    };
    Err(CqlError::invalid(fault))
}

/// The name, for messages, of the first column of `a` that `b` restricts, too, or of the token;
/// `None` if they restrict nothing in common.
fn common_name(a: &PreparedRelation, b: &PreparedRelation) -> Option<String> {
    if let (RelationKind::Token { .. }, RelationKind::Token { .. }) = (&a.kind, &b.kind) {
        let columns = a.text.strip_prefix("token(");
        let columns = columns.and_then(|rest| rest.split_once(')'));
        return Some(columns.map_or_else(|| a.text.clone(), |(columns, _)| columns.to_owned()));
    }
    columns(a)
        .iter()
        .find(|column| b.is_on(&column.name))
        .map(|column| column.name.clone())
}

fn columns(relation: &PreparedRelation) -> &[Column] {
    match &relation.kind {
        RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
            std::slice::from_ref(column)
        }
        RelationKind::Tuple { columns, .. } => columns,
        RelationKind::Token { .. } => &[],
    }
}

fn first_name(relation: &PreparedRelation) -> Option<&str> {
    relation.first_column().map(|column| column.name.as_str())
}

fn narrowing(relation: &PreparedRelation) -> NarrowingKind {
    match &relation.kind {
        RelationKind::Column {
            test: ColumnTest::Compare(comparison, _),
            ..
        }
        | RelationKind::Tuple {
            test: TupleTest::Compare(comparison, _),
            ..
        }
        | RelationKind::Token { comparison, .. } => match comparison {
            ComparisonOperator::Eq => NarrowingKind::Equal,
            ComparisonOperator::Gt | ComparisonOperator::GtEq => NarrowingKind::Lower,
            ComparisonOperator::Lt | ComparisonOperator::LtEq => NarrowingKind::Upper,
        },
        // To Cassandra, a list of one value is an equality.
        RelationKind::Column {
            test: ColumnTest::In(PreparedInList::Terms(terms)),
            ..
        } if terms.len() == 1 => NarrowingKind::Equal,
        RelationKind::Tuple {
            test: TupleTest::In(TupleList::Terms(terms)),
            ..
        } if terms.len() == 1 => NarrowingKind::Equal,
        RelationKind::Column {
            test: ColumnTest::In(_),
            ..
        }
        | RelationKind::Tuple {
            test: TupleTest::In(_),
            ..
        } => NarrowingKind::In,
        RelationKind::Column {
            test: ColumnTest::Contains(_) | ColumnTest::ContainsKey(_) | ColumnTest::Like(_),
            ..
        }
        | RelationKind::Entry { .. } => NarrowingKind::Holds,
    }
}
