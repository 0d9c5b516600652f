//! What a modification touches, as far as its text tells: the plan by which hints are made of values.
//!
//! Only the table, the key and the condition of a statement matter here; what it writes does not.

use std::sync::Arc;

use cql::ast::{
    Assignment, Comparand, Condition, Delete, DeleteTarget, Insert, InsertValues, Operator,
    Relation, Subject, Term, Update,
};
use cql::error::CqlError;

use super::calls;
use crate::catalog::{Column, LoggedTable};

/// The rows of a logged table that a statement touches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct WritePlan {
    pub(super) table: Arc<LoggedTable>,
    pub(super) action: Action,
    /// Covers the partition key.
    pub(super) partition: Vec<Part>,
    pub(super) extent: Extent,
    /// It has an IF.
    pub(super) conditional: bool,
    /// It comes to the same whether it is carried out once or twice.
    pub(super) is_repeatable: bool,
}

/// What is done to rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Action {
    Insert,
    /// Deleting single columns is an update, too.
    Update,
    Delete,
}

/// How much of a partition is touched.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Extent {
    /// Rows; the parts cover the clustering key, which may be empty.
    Rows(Vec<Part>),
    /// The static columns.
    Static,
    /// All rows of it.
    Partition,
    /// Some rows of it, which are not told apart here.
    Range,
}

/// The values that a statement gives some columns of a key: those of single columns, or of several as tuples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    /// Positions in the partition key or the clustering key.
    pub(super) columns: Vec<usize>,
    /// Whether the values are tuples.
    pub(super) is_tuple: bool,
    pub(super) choice: Choice,
}

/// The values of a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Choice {
    /// `= term`.
    One(Term),
    /// `IN (term, ...)`.
    Each(Vec<Term>),
    /// `IN ?`: the marker stands for a list.
    List(Term),
}

/// Why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Unplanned {
    /// Cassandra refuses the statement, and says why better than could be said here.
    Refused,
    /// Cassandra may carry it out, but the rows that it touches are not known here.
    Unreadable(CqlError),
}

impl WritePlan {
    pub(super) fn of_insert(
        insert: &Insert,
        table: Arc<LoggedTable>,
    ) -> Result<WritePlan, Unplanned> {
        let InsertValues::Columns { columns, terms } = &insert.values else {
            return Err(Unplanned::Unreadable(CqlError::invalid(format!(
                "INSERT JSON is not supported on {}.{}, which has a vector index: name the columns and their values",
                table.keyspace, table.name
            ))));
        };
        let part = |(position, column): (usize, &Column)| {
            let at = columns.iter().position(|name| *name == column.name)?;
            Some(Part::single(position, Choice::One(terms.get(at)?.clone())))
        };
        let parts =
            |key: &[Column]| -> Vec<Part> { key.iter().enumerate().filter_map(part).collect() };
        let partition = parts(table.partition_key());
        let clustering = parts(table.clustering_key());
        WritePlan {
            extent: extent(&table, clustering, false, Action::Insert),
            table,
            action: Action::Insert,
            partition,
            conditional: insert.condition.is_some(),
            is_repeatable: true,
        }
        .covering_partition_key()
    }

    pub(super) fn of_update(
        update: &Update,
        table: Arc<LoggedTable>,
    ) -> Result<WritePlan, Unplanned> {
        WritePlan::of_relations(
            table,
            Action::Update,
            &update.relations,
            update.condition.as_ref(),
            update.assignments.iter().all(|assignment| {
                matches!(
                    assignment,
                    Assignment::Set { .. } | Assignment::SetField { .. }
                )
            }),
        )
    }

    pub(super) fn of_delete(
        delete: &Delete,
        table: Arc<LoggedTable>,
    ) -> Result<WritePlan, Unplanned> {
        let action = match delete.targets.is_empty() {
            true => Action::Delete,
            false => Action::Update,
        };
        WritePlan::of_relations(
            table,
            action,
            &delete.relations,
            delete.condition.as_ref(),
            delete.targets.iter().all(|target| {
                matches!(target, DeleteTarget::Column(_) | DeleteTarget::Field { .. })
            }),
        )
    }

    fn of_relations(
        table: Arc<LoggedTable>,
        action: Action,
        relations: &[Relation],
        condition: Option<&Condition>,
        is_repeatable: bool,
    ) -> Result<WritePlan, Unplanned> {
        let mut partition = Vec::new();
        let mut clustering = Vec::new();
        let mut ranged = false;
        for relation in relations {
            let (names, is_tuple) = match &relation.subject {
                Subject::Column(name) => (std::slice::from_ref(name), false),
                Subject::Tuple(names) => (names.as_slice(), true),
                // No such relation is allowed in a modification.
                Subject::Token(_)
                | Subject::Element { .. }
                | Subject::Field { .. }
                | Subject::Function(_) => return Err(Unplanned::Refused),
            };
            let in_partition_key = positions(table.partition_key(), names);
            let in_clustering_key = positions(table.clustering_key(), names);
            let (key, columns) = match (in_partition_key, in_clustering_key) {
                (Some(columns), _) => (&mut partition, columns),
                (_, Some(columns)) => (&mut clustering, columns),
                // Only columns of the key may be restricted, and those of one key at a time.
                (None, None) => return Err(Unplanned::Refused),
            };
            match choice(relation) {
                Some(choice) => key.push(Part {
                    columns,
                    is_tuple,
                    choice,
                }),
                None => ranged = true,
            }
        }
        WritePlan {
            extent: extent(&table, clustering, ranged, action),
            table,
            action,
            partition,
            conditional: condition.is_some(),
            is_repeatable,
        }
        .covering_partition_key()
    }

    /// A modification names the whole partition key, or Cassandra refuses it.
    fn covering_partition_key(self) -> Result<WritePlan, Unplanned> {
        match covers(&self.partition, self.table.partition_key()) {
            true => Ok(self),
            false => Err(Unplanned::Refused),
        }
    }

    /// Whether the key depends on a function whose value is another each time.
    pub(super) fn has_changing_calls(&self) -> bool {
        let clustering = match &self.extent {
            Extent::Rows(parts) => parts.as_slice(),
            _ => &[],
        };
        self.partition
            .iter()
            .chain(clustering)
            .flat_map(|part| part.choice.terms())
            .any(calls::are_in)
    }
}

impl Part {
    fn single(column: usize, choice: Choice) -> Part {
        Part {
            columns: vec![column],
            is_tuple: false,
            choice,
        }
    }
}

impl Choice {
    fn terms(&self) -> &[Term] {
        match self {
            Choice::One(term) | Choice::List(term) => std::slice::from_ref(term),
            Choice::Each(terms) => terms,
        }
    }
}

/// The positions of columns in a key; `None` if one is not in it.
fn positions(key: &[Column], names: &[String]) -> Option<Vec<usize>> {
    names
        .iter()
        .map(|name| key.iter().position(|column| column.name == *name))
        .collect()
}

/// The values that a relation names; `None` if it is one of order.
fn choice(relation: &Relation) -> Option<Choice> {
    match (relation.operator, &relation.comparand) {
        (Operator::Eq, Comparand::Term(term)) => Some(Choice::One(term.clone())),
        (Operator::In, Comparand::List(terms)) => Some(Choice::Each(terms.clone())),
        (Operator::In, Comparand::Term(term)) => Some(Choice::List(term.clone())),
        _ => None,
    }
}

fn covers(parts: &[Part], key: &[Column]) -> bool {
    (0..key.len()).all(|position| parts.iter().any(|part| part.columns.contains(&position)))
}

fn extent(table: &LoggedTable, clustering: Vec<Part>, ranged: bool, action: Action) -> Extent {
    if !ranged && covers(&clustering, table.clustering_key()) {
        return Extent::Rows(clustering);
    }
    match (action, clustering.is_empty() && !ranged) {
        (Action::Delete, true) => Extent::Partition,
        // Without a clustering key only static columns can be written.
        (Action::Insert | Action::Update, true) => Extent::Static,
        (_, false) => Extent::Range,
    }
}

#[cfg(test)]
mod tests;
