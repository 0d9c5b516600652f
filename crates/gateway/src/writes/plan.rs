//! Plans of writes: the rows that a statement touches, as far as its text shows them. Hints are
//! made from a plan and bound values.
//!
//! Only the table, the key and the condition of a statement matter here, not the values that it
//! writes.

use std::sync::Arc;

use cql::ast::{
    Assignment, Comparand, ComparisonSubject, Delete, DeleteTarget, IfClause, Insert, InsertValues,
    Operator, Relation, Term, Update,
};
use cql::error::CqlError;

use super::calls;
use crate::catalog::{LoggedColumn, LoggedColumnKind, LoggedTable};

/// The rows of a logged table that a statement touches.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LoggedWritePlan {
    /// The table that the statement writes to.
    pub(super) table: Arc<LoggedTable>,
    /// The change that the statement makes to each row.
    pub(super) action: RowChangeKind,
    /// The parts that cover the partition key.
    pub(super) partition: Vec<KeyAlternatives>,
    /// The rows of each partition that the statement touches.
    pub(super) extent: PartitionExtent,
    /// Whether the statement writes static columns in addition to these rows.
    pub(super) writes_static: bool,
    /// Whether the statement has an IF.
    pub(super) conditional: bool,
    /// Whether the result is the same if the statement is carried out twice.
    pub(super) is_repeatable: bool,
}

/// The kind of change that a statement makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RowChangeKind {
    Insert,
    /// UPDATE, and DELETE of single columns.
    Update,
    Delete,
}

/// The part of a partition that a statement touches.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PartitionExtent {
    /// Single rows. The parts cover the clustering key, which may be empty.
    Rows(Vec<KeyAlternatives>),
    /// The static columns of the partition.
    Static,
    /// All rows of the partition.
    Partition,
    /// Some rows of the partition. The plan does not tell which.
    Range,
}

/// Alternative values for some columns of a key: for a single column, or for several columns as
/// tuples.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct KeyAlternatives {
    /// The positions of the columns in the partition key or in the clustering key.
    pub(super) columns: Vec<usize>,
    /// Whether the values are tuples.
    pub(super) is_tuple: bool,
    /// The alternative values.
    pub(super) choice: AlternativeTerms,
}

/// The alternative values of a part.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum AlternativeTerms {
    /// `= term`.
    One(Term),
    /// `IN (term, ...)`.
    Each(Vec<Term>),
    /// `IN ?`: the marker is a list.
    List(Term),
}

/// The reason why there is no plan.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum UnplannableWrite {
    /// Cassandra refuses the statement, and gives a better reason than the gateway could.
    Refused,
    /// Cassandra may carry the statement out, but the gateway cannot know the rows that it touches.
    Unreadable(CqlError),
}

impl LoggedWritePlan {
    /// Plans an INSERT.
    ///
    /// # Errors
    /// The reason why there is no plan.
    pub(super) fn of_insert(
        insert: &Insert,
        table: Arc<LoggedTable>,
    ) -> Result<LoggedWritePlan, UnplannableWrite> {
        // The key of INSERT JSON is within the JSON, which only the node takes apart.
        let InsertValues::Columns { columns, terms } = &insert.values else {
            return Err(UnplannableWrite::Unreadable(CqlError::invalid(format!(
                "INSERT JSON is not supported on {}.{}, which has a vector index: name the columns and their values",
                table.keyspace, table.name
            ))));
        };
        let part = |(position, column): (usize, &LoggedColumn)| {
            let at = columns.iter().position(|name| *name == column.name)?;
            Some(KeyAlternatives::single(
                position,
                AlternativeTerms::One(terms.get(at)?.clone()),
            ))
        };
        let parts = |key: &[LoggedColumn]| -> Vec<KeyAlternatives> {
            key.iter().enumerate().filter_map(part).collect()
        };
        let partition = parts(table.partition_key());
        let clustering = parts(table.clustering_key());
        LoggedWritePlan {
            extent: extent(&table, clustering, false, RowChangeKind::Insert),
            writes_static: has_static(&table, columns.iter().map(String::as_str)),
            table,
            action: RowChangeKind::Insert,
            partition,
            conditional: insert.condition.is_some(),
            is_repeatable: true,
        }
        .covering_partition_key()
    }

    /// Plans an UPDATE.
    ///
    /// # Errors
    /// The reason why there is no plan.
    pub(super) fn of_update(
        update: &Update,
        table: Arc<LoggedTable>,
    ) -> Result<LoggedWritePlan, UnplannableWrite> {
        LoggedWritePlan::of_relations(
            table,
            RowChangeKind::Update,
            &update.relations,
            update.condition.as_ref(),
            update.assignments.iter().map(Assignment::column),
            // `l = l + [1]` and `l[0] = 1` would meet another list the second time.
            update.assignments.iter().all(|assignment| {
                matches!(
                    assignment,
                    Assignment::Set { .. } | Assignment::SetField { .. }
                )
            }),
        )
    }

    /// Plans a DELETE.
    ///
    /// # Errors
    /// The reason why there is no plan.
    pub(super) fn of_delete(
        delete: &Delete,
        table: Arc<LoggedTable>,
    ) -> Result<LoggedWritePlan, UnplannableWrite> {
        let action = match delete.targets.is_empty() {
            true => RowChangeKind::Delete,
            false => RowChangeKind::Update,
        };
        LoggedWritePlan::of_relations(
            table,
            action,
            &delete.relations,
            delete.condition.as_ref(),
            delete.targets.iter().map(DeleteTarget::column),
            delete.targets.iter().all(|target| {
                matches!(target, DeleteTarget::Column(_) | DeleteTarget::Field { .. })
            }),
        )
    }

    fn of_relations<'w>(
        table: Arc<LoggedTable>,
        action: RowChangeKind,
        relations: &[Relation],
        condition: Option<&IfClause>,
        written: impl Iterator<Item = &'w str>,
        is_repeatable: bool,
    ) -> Result<LoggedWritePlan, UnplannableWrite> {
        let mut partition = Vec::new();
        let mut clustering = Vec::new();
        let mut ranged = false;
        for relation in relations {
            let (names, is_tuple) = match &relation.subject {
                ComparisonSubject::Column(name) => (std::slice::from_ref(name), false),
                ComparisonSubject::Tuple(names) => (names.as_slice(), true),
                // Cassandra allows no such relation in a modification.
                ComparisonSubject::Token(_)
                | ComparisonSubject::Element { .. }
                | ComparisonSubject::Field { .. }
                | ComparisonSubject::Function(_) => return Err(UnplannableWrite::Refused),
            };
            let in_partition_key = positions(table.partition_key(), names);
            let in_clustering_key = positions(table.clustering_key(), names);
            let (key, columns) = match (in_partition_key, in_clustering_key) {
                (Some(columns), _) => (&mut partition, columns),
                (_, Some(columns)) => (&mut clustering, columns),
                // A relation may only restrict key columns, and only those of one of the two keys.
                (None, None) => return Err(UnplannableWrite::Refused),
            };
            match choice(relation) {
                Some(choice) => key.push(KeyAlternatives {
                    columns,
                    is_tuple,
                    choice,
                }),
                // It names no row by its key, so the hint is for the partition.
                None => ranged = true,
            }
        }
        LoggedWritePlan {
            extent: extent(&table, clustering, ranged, action),
            writes_static: has_static(&table, written),
            table,
            action,
            partition,
            conditional: condition.is_some(),
            is_repeatable,
        }
        .covering_partition_key()
    }

    /// Returns the plan if it covers the whole partition key. Otherwise Cassandra refuses the
    /// statement.
    fn covering_partition_key(self) -> Result<LoggedWritePlan, UnplannableWrite> {
        match covers(&self.partition, self.table.partition_key()) {
            true => Ok(self),
            false => Err(UnplannableWrite::Refused),
        }
    }

    /// Whether the key depends on a function whose value changes with each call.
    pub(super) fn has_changing_calls(&self) -> bool {
        let clustering = match &self.extent {
            PartitionExtent::Rows(parts) => parts.as_slice(),
            _ => &[],
        };
        self.partition
            .iter()
            .chain(clustering)
            .flat_map(|part| part.choice.terms())
            .any(calls::are_in)
    }
}

impl KeyAlternatives {
    fn single(column: usize, choice: AlternativeTerms) -> KeyAlternatives {
        KeyAlternatives {
            columns: vec![column],
            is_tuple: false,
            choice,
        }
    }
}

impl AlternativeTerms {
    fn terms(&self) -> &[Term] {
        match self {
            AlternativeTerms::One(term) | AlternativeTerms::List(term) => {
                std::slice::from_ref(term)
            }
            AlternativeTerms::Each(terms) => terms,
        }
    }
}

/// The positions of columns in a key; `None` if one is not in it.
fn positions(key: &[LoggedColumn], names: &[String]) -> Option<Vec<usize>> {
    names
        .iter()
        .map(|name| key.iter().position(|column| column.name == *name))
        .collect()
}

/// The values that a relation names; `None` for a relation such as `<` that names none.
fn choice(relation: &Relation) -> Option<AlternativeTerms> {
    match (relation.operator, &relation.comparand) {
        (Operator::Eq, Comparand::Term(term)) => Some(AlternativeTerms::One(term.clone())),
        (Operator::In, Comparand::List(terms)) => Some(AlternativeTerms::Each(terms.clone())),
        (Operator::In, Comparand::Term(term)) => Some(AlternativeTerms::List(term.clone())),
        _ => None,
    }
}

fn has_static<'w>(table: &LoggedTable, mut names: impl Iterator<Item = &'w str>) -> bool {
    names.any(|name| {
        let column = table.column(name);
        column.is_some_and(|column| column.kind == LoggedColumnKind::Static)
    })
}

fn covers(parts: &[KeyAlternatives], key: &[LoggedColumn]) -> bool {
    (0..key.len()).all(|position| parts.iter().any(|part| part.columns.contains(&position)))
}

fn extent(
    table: &LoggedTable,
    clustering: Vec<KeyAlternatives>,
    ranged: bool,
    action: RowChangeKind,
) -> PartitionExtent {
    if !ranged && covers(&clustering, table.clustering_key()) {
        return PartitionExtent::Rows(clustering);
    }
    match (action, clustering.is_empty() && !ranged) {
        (RowChangeKind::Delete, true) => PartitionExtent::Partition,
        // Without a clustering key a statement can only write static columns.
        (RowChangeKind::Insert | RowChangeKind::Update, true) => PartitionExtent::Static,
        (_, false) => PartitionExtent::Range,
    }
}

#[cfg(test)]
mod tests;
