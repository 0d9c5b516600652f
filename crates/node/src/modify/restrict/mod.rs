//! The `WHERE` clause of UPDATE and DELETE, sorted by the part of the key that each relation
//! restricts.

mod part;

use cql::ast::{ComparisonSubject, Operator, Relation};
use cql::error::CqlError;
use part::{
    KeyColumnGroup, edge, equal_part, more_than_one, names, operator_of, put_once, unsupported,
};
use query::bind::PrepareContext;
use query::resolve;
use schema::{Column, ColumnKind, Table};

use super::plan::WriteKind;
use super::target::{KeyPart, SlicePlan, WriteTarget};

/// Makes a target of the relations.
///
/// # Errors
/// Relations that don't name the key from its first column on without a gap, in the words of
/// Cassandra; and terms that don't fit.
pub(super) fn prepare_target(
    table: &Table,
    kind: WriteKind,
    relations: &[Relation],
    ctx: &mut PrepareContext,
) -> Result<WriteTarget, CqlError> {
    let mut sorted = SortedRelations::new(table, kind);
    for relation in relations {
        sorted.add(relation, ctx)?;
    }
    sorted.finish()
}

/// The relations taken so far, sorted by the part of the key that they restrict.
struct SortedRelations<'t> {
    table: &'t Table,
    kind: WriteKind,
    /// Equalities and INs on partition key columns, by the position of the column.
    partition: Vec<Option<KeyPart>>,
    /// Equalities and INs on clustering columns, by the position of their first column.
    clustering: Vec<Option<KeyPart>>,
    /// Bounds on clustering columns, by the position of their first column.
    slices: Vec<Option<SlicePlan>>,
    /// The names of restricted columns that are not part of the key.
    others: Vec<String>,
}

impl<'t> SortedRelations<'t> {
    fn new(table: &'t Table, kind: WriteKind) -> Self {
        let clustering = table.clustering_key().len();
        SortedRelations {
            table,
            kind,
            partition: table.partition_key().iter().map(|_| None).collect(),
            clustering: (0..clustering).map(|_| None).collect(),
            slices: (0..clustering).map(|_| None).collect(),
            others: Vec::new(),
        }
    }

    fn add(&mut self, relation: &Relation, ctx: &mut PrepareContext) -> Result<(), CqlError> {
        if matches!(
            relation.operator,
            Operator::Contains | Operator::ContainsKey
        ) {
            return Err(CqlError::invalid(format!(
                "Cannot use {} with {}",
                self.kind.name(),
                relation.operator.as_str()
            )));
        }
        match &relation.subject {
            ComparisonSubject::Column(name) => self.add_column(name, relation, ctx),
            ComparisonSubject::Tuple(names) => self.add_tuple(names, relation, ctx),
            ComparisonSubject::Token(_) => Err(CqlError::invalid(format!(
                "The token function cannot be used in WHERE clauses for {} statements",
                self.kind.name()
            ))),
            ComparisonSubject::Element { column, .. } => Err(CqlError::invalid(format!(
                "Unsupported restriction: an element of {column} cannot be restricted in {} \
                 statements",
                self.kind.name()
            ))),
            ComparisonSubject::Field { column, field } => Err(CqlError::invalid(format!(
                "Unsupported restriction: the field {field} of {column} cannot be restricted in {} \
                 statements",
                self.kind.name()
            ))),
            ComparisonSubject::Function(call) => Err(CqlError::invalid(format!(
                "Unsupported restriction: {}() cannot be used in WHERE clauses for {} statements",
                call.name,
                self.kind.name()
            ))),
        }
    }

    fn add_column(
        &mut self,
        name: &str,
        relation: &Relation,
        ctx: &mut PrepareContext,
    ) -> Result<(), CqlError> {
        let table = self.table;
        let column = resolve::column(table, name)?;
        let place = KeyColumnGroup {
            columns: &[column],
            is_tuple: false,
        };
        match column.kind {
            ColumnKind::PartitionKey { position } => {
                if !matches!(relation.operator, Operator::Eq | Operator::In) {
                    return Err(CqlError::invalid(format!(
                        "Only EQ and IN relation are supported on the partition key (unless you \
                         use the token() function) for {} statements",
                        self.kind.name()
                    )));
                }
                let part = equal_part(place, relation, ctx)?;
                put_once(&mut self.partition[position], part)
            }
            ColumnKind::Clustering { position, .. } => {
                self.add_clustering(position, place, relation, ctx)
            }
            ColumnKind::Static | ColumnKind::Regular => {
                self.others.push(name.to_owned());
                // `finish` refuses the relation, as its error names all such columns.
                Ok(())
            }
        }
    }

    fn add_tuple(
        &mut self,
        names: &[String],
        relation: &Relation,
        ctx: &mut PrepareContext,
    ) -> Result<(), CqlError> {
        let mut columns = Vec::new();
        let mut first = 0;
        for (offset, name) in names.iter().enumerate() {
            let column = resolve::column(self.table, name)?;
            let ColumnKind::Clustering { position, .. } = column.kind else {
                return Err(CqlError::invalid(format!(
                    "Multi-column relations can only be applied to clustering columns but was \
                     applied to: {name}"
                )));
            };
            if columns.iter().any(|other: &&Column| other.name == *name) {
                return Err(CqlError::invalid(format!(
                    "Column \"{name}\" appeared twice in a relation: ({})",
                    names.join(", ")
                )));
            }
            if offset == 0 {
                first = position;
            } else if position != first + offset {
                return Err(CqlError::invalid(format!(
                    "Clustering columns must appear in the PRIMARY KEY order in multi-column \
                     relations: ({})",
                    names.join(", ")
                )));
            }
            columns.push(column);
        }
        let place = KeyColumnGroup {
            columns: &columns,
            is_tuple: true,
        };
        self.add_clustering(first, place, relation, ctx)
    }

    fn add_clustering(
        &mut self,
        position: usize,
        place: KeyColumnGroup<'_>,
        relation: &Relation,
        ctx: &mut PrepareContext,
    ) -> Result<(), CqlError> {
        let columns = place.columns;
        match relation.operator {
            Operator::Eq | Operator::In => {
                let part = equal_part(place, relation, ctx)?;
                if self.slices[position].is_some() {
                    return Err(more_than_one(&names(columns), relation.operator));
                }
                put_once(&mut self.clustering[position], part)
            }
            Operator::Lt | Operator::LtEq | Operator::Gt | Operator::GtEq => {
                if self.kind != WriteKind::DeleteRows {
                    return Err(CqlError::invalid(match self.kind {
                        WriteKind::DeleteCells => {
                            "Range deletions are not supported for specific columns".to_owned()
                        }
                        _ => format!(
                            "Slice restrictions are not supported on the clustering columns in \
                             {} statements",
                            self.kind.name()
                        ),
                    }));
                }
                if let Some(part) = &self.clustering[position] {
                    return Err(more_than_one(&part.columns, operator_of(part)));
                }
                let edge = edge(place, relation, ctx)?;
                let slice = self.slices[position].get_or_insert_default();
                let is_lower = matches!(relation.operator, Operator::Gt | Operator::GtEq);
                let (place, side) = if is_lower {
                    (&mut slice.lower, "start")
                } else {
                    (&mut slice.upper, "end")
                };
                if place.is_some() {
                    return Err(CqlError::invalid(format!(
                        "More than one restriction was found for the {side} bound on {}",
                        names(columns).join(", ")
                    )));
                }
                *place = Some(edge);
                Ok(())
            }
            _ => Err(unsupported(columns, relation.operator)),
        }
    }

    fn finish(self) -> Result<WriteTarget, CqlError> {
        if !self.others.is_empty() {
            return Err(CqlError::invalid(format!(
                "Non PRIMARY KEY columns found in where clause: {}",
                self.others.join(", ")
            )));
        }
        let missing: Vec<&str> = self
            .table
            .partition_key()
            .iter()
            .zip(&self.partition)
            .filter(|(_, part)| part.is_none())
            .map(|(column, _)| column.name.as_str())
            .collect();
        if !missing.is_empty() {
            return Err(CqlError::invalid(format!(
                "Some partition key parts are missing: {}",
                missing.join(", ")
            )));
        }
        let (clustering, slice) = in_order(self.table, self.clustering, self.slices)?;
        Ok(WriteTarget {
            partition: self.partition.into_iter().flatten().collect(),
            clustering,
            slice,
        })
    }
}

/// Takes the restrictions of clustering columns from the first column on. A gap is an error.
fn in_order(
    table: &Table,
    mut parts: Vec<Option<KeyPart>>,
    mut slices: Vec<Option<SlicePlan>>,
) -> Result<(Vec<KeyPart>, Option<SlicePlan>), CqlError> {
    let mut taken = Vec::new();
    let mut position = 0;
    while let Some(part) = parts.get_mut(position).and_then(Option::take) {
        let next = position + part.columns.len();
        // A column within the tuple is restricted by another relation, too.
        if (position + 1..next).any(|inner| parts[inner].is_some() || slices[inner].is_some()) {
            return Err(more_than_one(&part.columns, operator_of(&part)));
        }
        taken.push(part);
        position = next;
    }
    let slice = slices.get_mut(position).and_then(Option::take);
    let clustering = table.clustering_key();
    let behind =
        (position..clustering.len()).find(|at| parts[*at].is_some() || slices[*at].is_some());
    if let Some(behind) = behind {
        let (name, preceding) = (&clustering[behind].name, &clustering[position].name);
        return Err(CqlError::invalid(if slice.is_some() {
            format!(
                "Clustering column \"{name}\" cannot be restricted (preceding column \
                 \"{preceding}\" is restricted by a non-EQ relation)"
            )
        } else {
            format!(
                "PRIMARY KEY column \"{name}\" cannot be restricted as preceding column \
                 \"{preceding}\" is not restricted"
            )
        }));
    }
    Ok((taken, slice))
}
