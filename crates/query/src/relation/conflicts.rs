//! Conflicts of relations: a column may have one equality, one IN or two bounds.

use cql::error::CqlError;
use schema::Column;
use value::predicate::Comparison;

use super::{Relation, RelationKind, Test, TupleList, TupleTest};
use crate::bind::PreparedInList;

/// The way in which a relation narrows its columns down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Narrowing {
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
pub fn check(relations: &[Relation]) -> Result<(), CqlError> {
    for (position, later) in relations.iter().enumerate() {
        for earlier in &relations[..position] {
            check_pair(earlier, later)?;
        }
    }
    Ok(())
}

fn check_pair(earlier: &Relation, later: &Relation) -> Result<(), CqlError> {
    let Some(name) = common_name(earlier, later) else {
        return Ok(());
    };
    let (a, b) = (narrowing(earlier), narrowing(later));
    let fault = match (a, b) {
        (Narrowing::Holds, Narrowing::Holds) => return Ok(()),
        (Narrowing::Holds, _) | (_, Narrowing::Holds) => format!(
            "Collection column {name} can only be restricted by CONTAINS, CONTAINS KEY, or map-entry equality"
        ),
        (Narrowing::Equal, _) | (_, Narrowing::Equal) => {
            format!("{name} cannot be restricted by more than one relation if it includes an Equal")
        }
        (Narrowing::In, _) | (_, Narrowing::In) => {
            format!("{name} cannot be restricted by more than one relation if it includes a IN")
        }
        _ if first_name(earlier) != first_name(later) => format!(
            "Column \"{}\" cannot be restricted by two inequalities not starting with the same column",
            first_name(later).unwrap_or_default()
        ),
        (Narrowing::Lower, Narrowing::Lower) => {
            format!("More than one restriction was found for the start bound on {name}")
        }
        (Narrowing::Upper, Narrowing::Upper) => {
            format!("More than one restriction was found for the end bound on {name}")
        }
        (Narrowing::Lower, Narrowing::Upper) | (Narrowing::Upper, Narrowing::Lower) => {
            return Ok(());
        }
    };
    Err(CqlError::invalid(fault))
}

/// The name, for messages, of the first column of `a` that `b` restricts, too, or of the token;
/// `None` if they restrict nothing in common.
fn common_name(a: &Relation, b: &Relation) -> Option<String> {
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

fn columns(relation: &Relation) -> &[Column] {
    match &relation.kind {
        RelationKind::Column { column, .. } | RelationKind::Entry { column, .. } => {
            std::slice::from_ref(column)
        }
        RelationKind::Tuple { columns, .. } => columns,
        RelationKind::Token { .. } => &[],
    }
}

fn first_name(relation: &Relation) -> Option<&str> {
    relation.first_column().map(|column| column.name.as_str())
}

fn narrowing(relation: &Relation) -> Narrowing {
    match &relation.kind {
        RelationKind::Column {
            test: Test::Compare(comparison, _),
            ..
        }
        | RelationKind::Tuple {
            test: TupleTest::Compare(comparison, _),
            ..
        }
        | RelationKind::Token { comparison, .. } => match comparison {
            Comparison::Eq => Narrowing::Equal,
            Comparison::Gt | Comparison::GtEq => Narrowing::Lower,
            Comparison::Lt | Comparison::LtEq => Narrowing::Upper,
        },
        // To Cassandra, a list of one value is an equality.
        RelationKind::Column {
            test: Test::In(PreparedInList::Terms(terms)),
            ..
        } if terms.len() == 1 => Narrowing::Equal,
        RelationKind::Tuple {
            test: TupleTest::In(TupleList::Terms(terms)),
            ..
        } if terms.len() == 1 => Narrowing::Equal,
        RelationKind::Column {
            test: Test::In(_), ..
        }
        | RelationKind::Tuple {
            test: TupleTest::In(_),
            ..
        } => Narrowing::In,
        RelationKind::Column {
            test: Test::Contains(_) | Test::ContainsKey(_) | Test::Like(_),
            ..
        }
        | RelationKind::Entry { .. } => Narrowing::Holds,
    }
}
