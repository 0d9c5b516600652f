//! An ordering by similarity, `ORDER BY v ANN OF ...`: which index serves it, and which vector it
//! looks for.

use std::fmt;
use std::sync::Arc;

use cql::ast;
use cql::error::CqlError;
use index::CandidateRule;
use query::bind::PrepareContext;
use query::condition::{FilterSupport, SearchCondition, conditions, is_key_column};
use query::relation::PreparedRelation;
use query::{AnnOptions, IndexDefinition, NearestTo, SearchVector, clauses, covered, serving};
use schema::{Column, ColumnId, Table, VectorIndexMetadata};

use super::column_location::ColumnLocation;
use super::projection::ResolvedSelection;

/// An ordering by the similarity of a column's vectors to one vector, resolved.
#[derive(Debug)]
pub(super) struct NearestOrder {
    /// The vector index that names rows in this order.
    pub index: Arc<VectorIndexMetadata>,
    /// The place of the vector column in a row.
    pub place: ColumnLocation,
    /// The vector to look for.
    pub vector: SearchVector,
    /// All columns of the primary key, partition key first.
    pub key_columns: Vec<Column>,
    /// The number of partition key columns, which are the first of `key_columns`.
    pub partition_columns: usize,
    /// The number of candidates to request, and whether they are put in order again.
    pub candidates: CandidateRule,
    /// The options of the search.
    pub options: AnnOptions,
    /// The columns that the index keeps with the vectors.
    kept: Vec<ColumnId>,
    /// The columns with an index of their own.
    indexed: Vec<ColumnId>,
    /// The relations of WHERE. Each row is checked for all of them, as the index may not have taken
    /// up a change yet.
    pub conditions: Vec<SearchCondition>,
    /// The columns outside of the key that the selection reads, if the index keeps all of them as
    /// the rows have them, and all columns of WHERE. Then it can answer by itself.
    pub covered: Option<Vec<Column>>,
}

impl fmt::Display for NearestOrder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "nearest {} by index {}",
            self.vector.column, self.index.name
        )?;
        if self.options.exact {
            writeln!(f, "exactly")?;
        }
        if self.candidates.oversampling != 1.0 {
            writeln!(f, "oversampling {}", self.candidates.oversampling)?;
        }
        if let Some(similarity) = self.candidates.rescoring {
            writeln!(f, "rescoring by {similarity:?}")?;
        }
        for (name, is_kept) in [("filter in the index", true), ("filter of rows", false)] {
            let conditions = self.conditions.iter();
            let of_name = conditions.filter(|condition| condition.is_kept == is_kept);
            let texts: Vec<&str> = of_name.map(|one| one.relation.text.as_str()).collect();
            if !texts.is_empty() {
                writeln!(f, "{name}: {}", texts.join(" and "))?;
            }
        }
        if self.covered.is_some() {
            writeln!(f, "by the index alone at consistency ONE")?;
        }
        Ok(())
    }
}

/// Resolves an ordering by similarity, and checks the other clauses.
///
/// # Errors
/// Clauses that such a query can't have, in the words of ScyllaDB, and a column without a vector
/// index.
pub(super) fn prepare(
    table: &Table,
    to: NearestTo<'_>,
    select: &ast::Select,
    projection: &ResolvedSelection,
    ctx: &mut PrepareContext,
) -> Result<NearestOrder, CqlError> {
    let column = table
        .column(to.column)
        .ok_or_else(|| clauses::unknown_column(to.column, (&table.keyspace, &table.name)))?;
    clauses::float_vector_dimensions(&column.name, &column.cql_type)?;
    let of_column = table.indexes.values();
    let of_column = of_column.filter(|index| index.column == column.name);
    let is_kept = |index: &VectorIndexMetadata, name: &str| {
        let column = table.column(name);
        column.is_some_and(|column| keeps(table, index, column))
    };
    let index = serving(of_column, select, is_kept).ok_or_else(|| {
        CqlError::invalid(format!(
            "ANN ordering by vector requires the column to be indexed using 'vector_index', but column {} is not",
            column.name
        ))
    })?;
    clauses::check(select, &column.name, !projection.aggregates.is_empty())?;
    let vector = SearchVector::prepare(to.vector, &column.name, &column.cql_type, ctx)?;
    let key_columns: Vec<Column> = table
        .partition_key()
        .into_iter()
        .chain(table.clustering_key())
        .cloned()
        .collect();
    let kept = table.columns.iter();
    let kept = kept.filter(|column| keeps(table, index, column));
    let indexed = table.secondary_indexes.values();
    let indexed = indexed.filter(|index| !index.is_local);
    Ok(NearestOrder {
        kept: kept.map(|column| column.id).collect(),
        indexed: indexed.map(|index| index.column).collect(),
        candidates: CandidateRule::of(|name| index.options.get(name).map(String::as_str)),
        index: index.clone(),
        place: ColumnLocation::of(column),
        vector,
        options: to.options,
        partition_columns: table.partition_key().len(),
        key_columns,
        conditions: Vec::new(),
        covered: None,
    })
}

/// Whether an index keeps the values of a column: the column is of the primary key, the index names
/// it, or it has an index of its own.
fn keeps(table: &Table, index: &VectorIndexMetadata, column: &Column) -> bool {
    is_key_column(column.kind)
        || index.names(&column.name)
        || table.columns_with_an_index().any(|own| own.id == column.id)
}

impl NearestOrder {
    /// Takes the relations of WHERE.
    ///
    /// # Errors
    /// A column whose values no index keeps, without ALLOW FILTERING.
    pub(super) fn restrict(
        &mut self,
        relations: &[PreparedRelation],
        allow_filtering: bool,
    ) -> Result<(), CqlError> {
        let support = |column: &Column| {
            if self.kept.contains(&column.id) {
                FilterSupport::Kept
            } else if self.indexed.contains(&column.id) {
                FilterSupport::Allowed
            } else {
                FilterSupport::None
            }
        };
        self.conditions = conditions(relations.to_vec(), support, allow_filtering)?;
        Ok(())
    }

    /// Finds out whether the index can answer by itself ([`covered`]), once WHERE has been taken.
    pub(super) fn cover(&mut self, projection: &ResolvedSelection) {
        let (conditions, read) = (&self.conditions, &projection.read);
        self.covered = match projection.reads_times {
            true => None,
            false => covered(&*self.index, &self.candidates, conditions, read),
        };
    }
}
