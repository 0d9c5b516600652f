//! Makes the plan of a nearest-neighbour query from the text of a statement.

use std::fmt;
use std::sync::Arc;

use cql::ast::{Select, Statement};
use cql::error::CqlError;
use cql::parser::{parse_statement, selection_text};
use cql::wire::{ColumnSpec, ColumnsMetadata};
use index::CandidateRule;
use query::IndexDefinition as _;
use query::bind::{PrepareContext, PreparedTerm};
use query::{
    AnnOptions, RowOrdering, SearchVector, bounds, clauses, limit, serving, similarity_columns,
};

use super::conditions::QueryConditions;
use super::covered::IndexOnlyAnswer;
use crate::catalog::{DefinedIndex, IndexCatalogSnapshot, LoggedTable};
use crate::key_read::{KeyRead, TableRead, VectorReadColumns};

/// The plan of a nearest-neighbour query that uses an index of the gateway's. It is made by one
/// snapshot of the catalog.
#[derive(Debug)]
pub(crate) struct AnnPlan {
    /// The index that is searched.
    pub(super) index: Arc<DefinedIndex>,
    /// The table whose rows are read.
    pub(super) table: Arc<LoggedTable>,
    /// The vector to search for.
    pub(super) vector: SearchVector,
    /// The number of rows to return.
    pub(super) limit: PreparedTerm,
    /// The conditions of WHERE.
    pub(super) conditions: QueryConditions,
    /// The number of candidates to request from the index, and whether they are scored again.
    pub(super) candidates: CandidateRule,
    /// The options of the search.
    pub(super) options: AnnOptions,
    /// The names of all bind markers in the order of the text; `None` for `?`.
    pub(super) markers: Vec<Option<String>>,
    /// The number of markers in the selection. They come first.
    pub(super) selection_markers: usize,
    /// The specs of the markers after those of the selection.
    variables: Vec<ColumnSpec>,
    /// The statement that reads rows by their keys.
    pub(super) read: KeyRead,
    /// The statement that reads all rows, for a query whose rows the index can't name.
    pub(super) scan: TableRead,
    /// The answer by what the index keeps; `None` if rows have to be read in any case.
    pub(super) covered: Option<IndexOnlyAnswer>,
}

impl fmt::Display for AnnPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let DefinedIndex { name, target, .. } = &*self.index;
        let column = &target.column;
        let exact = if self.options.exact { " exactly" } else { "" };
        writeln!(f, "nearest {column} by index {name}{exact}")?;
        for condition in &self.conditions.all {
            let by = if condition.is_kept {
                "in the index"
            } else {
                "of rows"
            };
            writeln!(f, "filter {by}: {}", condition.relation.text)?;
        }
        if self.covered.is_some() {
            writeln!(
                f,
                "by the index alone at consistency ONE, if the gateway may"
            )?;
        }
        writeln!(f, "then {}", self.read.text)
    }
}

impl AnnPlan {
    /// Plans a statement; `None` if it is no nearest-neighbour query, or uses no index in
    /// `snapshot`. The cluster answers such a statement. `keyspace` is the keyspace in use.
    ///
    /// # Errors
    /// If the query has anything that such a query can't have, in the words of ScyllaDB.
    pub(crate) fn of(
        text: &str,
        keyspace: Option<&str>,
        snapshot: &IndexCatalogSnapshot,
    ) -> Result<Option<AnnPlan>, CqlError> {
        // A text that cannot be parsed here goes to the cluster, which says what is wrong with it.
        let Ok(parsed) = parse_statement(text) else {
            return Ok(None);
        };
        let Statement::Select(select) = parsed.statement else {
            return Ok(None);
        };
        let Some((table, index)) = indexed(&select, keyspace, snapshot) else {
            return Ok(None);
        };
        let RowOrdering::Nearest(ordering) = RowOrdering::of(&select)? else {
            return Ok(None);
        };
        let column = table.column(ordering.column);
        let column_type = column.and_then(|column| column.cql_type.as_ref());
        let names = (
            select
                .table
                .keyspace
                .as_deref()
                .or(keyspace)
                .unwrap_or_default(),
            &*select.table.name,
        );
        let column_type =
            column_type.ok_or_else(|| clauses::unknown_column(ordering.column, names))?;
        clauses::float_vector_dimensions(ordering.column, column_type)?;
        if select.json {
            return Err(CqlError::invalid(
                "SELECT JSON is not supported by Annulus yet",
            ));
        }
        clauses::check(
            &select,
            ordering.column,
            clauses::calls_aggregate(&select.projection),
        )?;
        let selection = selection_text(text)?;
        let mut ctx = PrepareContext::new(&table.keyspace, &table.name, parsed.markers.len());
        let vector =
            SearchVector::prepare(ordering.vector, ordering.column, column_type, &mut ctx)?;
        let conditions = QueryConditions::of(&select, &table, &index, snapshot, &mut ctx)?;
        let limit = limit::prepare(select.limit.as_ref(), limit::LIMIT, &mut ctx)?;
        let limit = limit.ok_or_else(bounds::no_limit)?;
        let candidates = CandidateRule::of(|name| index.options.get(name).map(String::as_str));
        let needed = VectorReadColumns {
            vector: ordering.column,
            needs_vector: candidates.rescoring.is_some(),
            checked: &conditions.checked,
        };
        let projection = &select.projection;
        let covered = IndexOnlyAnswer::of(&select, &table, &index, &candidates, &conditions);
        Ok(Some(AnnPlan {
            variables: own_variables(ctx, selection.markers)?,
            read: KeyRead::of(selection.text, projection, &table, needed),
            scan: TableRead::of(selection.text, projection, &table, needed),
            covered,
            vector,
            limit,
            conditions,
            candidates,
            options: ordering.options,
            markers: parsed.markers,
            selection_markers: selection.markers,
            table,
            index,
        }))
    }

    /// The bind markers as they are reported to clients. `selection` describes the markers in the
    /// selection, as the cluster does.
    pub(super) fn variables(&self, selection: &[ColumnSpec]) -> ColumnsMetadata {
        ColumnsMetadata {
            columns: selection.iter().chain(&self.variables).cloned().collect(),
        }
    }
}

/// The specs of the markers after the selection. The cluster reports those in the selection.
fn own_variables(
    mut ctx: PrepareContext,
    selection_markers: usize,
) -> Result<Vec<ColumnSpec>, CqlError> {
    let of_selection = ctx
        .variables
        .drain(..selection_markers.min(ctx.variables.len()));
    drop(of_selection);
    let specs: Option<Vec<ColumnSpec>> = ctx.variables.into_iter().collect();
    specs.ok_or_else(|| {
        CqlError::invalid(
            "bind markers may stand in the selection, in WHERE, for the vector and for LIMIT only",
        )
    })
}

/// The table of a statement, and the index that serves it, of those on the column that it orders
/// by.
fn indexed(
    select: &Select,
    keyspace: Option<&str>,
    snapshot: &IndexCatalogSnapshot,
) -> Option<(Arc<LoggedTable>, Arc<DefinedIndex>)> {
    let keyspace = select.table.keyspace.as_deref().or(keyspace)?;
    let name = select.table.name.as_str();
    let is_meant = |index: &&Arc<DefinedIndex>| {
        similarity_columns(&select.order_by).any(|column| column == index.target.column)
    };
    let meant: Vec<_> = snapshot.indexes(keyspace, name).filter(is_meant).collect();
    let table = snapshot.logged_table(keyspace, name)?;
    let is_kept = |index: &DefinedIndex, name: &str| {
        let mut key = table.primary_key().iter();
        key.any(|column| column.name == name) || index.names(name) || table.is_kept_unnamed(name)
    };
    let index = serving(meant.iter().copied(), select, is_kept)?.clone();
    Some((table, index))
}

#[cfg(test)]
mod tests {
    use value::CqlType;

    use super::super::fixtures::snapshot;
    use super::*;

    fn plan(text: &str) -> Result<Option<AnnPlan>, CqlError> {
        AnnPlan::of(text, Some("shop"), &snapshot())
    }

    #[test]
    fn a_query_of_an_index_is_planned() {
        for text in [
            "SELECT name FROM films ORDER BY v ANN OF [1, 2, 3] LIMIT 10",
            "select name from shop.films order by ann(v, ?) limit ?;",
            "SELECT * FROM \"shop\".\"films\" ORDER BY v ANN OF :v LIMIT :n",
            "SELECT address.zip, address.street.\"No\", m['k'].f AS f FROM films ORDER BY v ANN OF ? LIMIT 10",
        ] {
            let plan = plan(text).unwrap().expect(text);
            assert_eq!(plan.index.name, "newer", "{text}");
            assert_eq!(plan.vector.dimensions, 3);
        }
        let other = AnnPlan::of(
            "SELECT name FROM films ORDER BY v ANN OF ? LIMIT 1",
            None,
            &snapshot(),
        );
        assert!(other.unwrap().is_none(), "there is no keyspace in use");
    }

    #[test]
    fn an_exact_search_is_planned() {
        let exact = |with: &str| {
            let text = format!("SELECT name FROM films ORDER BY v ANN OF ? LIMIT 10 {with}");
            let plan = plan(&text).unwrap().expect("a plan");
            // The cluster knows no such clause.
            for read in [&plan.read.text, &plan.scan.text] {
                assert!(!read.contains("ann_options"), "{read}");
            }
            assert_eq!(plan.to_string().contains("exactly"), plan.options.exact);
            plan.options.exact
        };
        assert!(!exact(""));
        assert!(exact("WITH ann_options = {'exact': true}"));
        assert!(exact(
            "ALLOW FILTERING WITH ann_options = {'exact': 'true'}"
        ));
        assert!(!exact("WITH ann_options = {'exact': false}"));
    }

    #[test]
    fn the_rest_is_the_clusters_to_answer() {
        for text in [
            // An index of the cluster's own (SAI), which may know options of its own.
            "SELECT name FROM films ORDER BY w ANN OF ? LIMIT 10 WITH ann_options = {'rerank_k': 20}",
            "SELECT name FROM films WITH ann_options = {'exact': true}",
            "SELECT name FROM films ORDER BY v ANN OF ? LIMIT 10 WITH ann_options = {'exact'}",
            "SELECT name FROM films ORDER BY w ANN OF ? LIMIT 10",
            "SELECT name FROM others ORDER BY v ANN OF ? LIMIT 10",
            "SELECT name FROM films WHERE ann = 3",
            "SELECT name FROM films ORDER BY v ANN OFF ? LIMIT 10",
            "INSERT INTO films (id, name) VALUES (1, 'ann of')",
        ] {
            assert!(plan(text).unwrap().is_none(), "{text}");
        }
    }

    #[test]
    fn the_unsupported_part_of_a_query_is_named() {
        for (text, named) in [
            ("ORDER BY v ANN OF ?", "must have a limit"),
            ("ORDER BY v ANN OF ? DESC LIMIT 3", "Descending"),
            ("ORDER BY v ANN OF ?, id LIMIT 3", "any other ordering"),
            (
                "ORDER BY v ANN OF [1, 2] LIMIT 3",
                "the same vector dimensions",
            ),
            ("ORDER BY v ANN OF ? LIMIT 0", "strictly positive"),
            (
                "WHERE name = ? ORDER BY v ANN OF ? LIMIT 3",
                "Column name can't restrict",
            ),
            (
                "WHERE w = ? ORDER BY v ANN OF ? LIMIT 3",
                "Column w can't restrict",
            ),
            (
                "WHERE v = ? ORDER BY v ANN OF ? LIMIT 3",
                "only support ANN queries",
            ),
            (
                "WHERE x = 1 ORDER BY v ANN OF ? LIMIT 3",
                "Undefined column name x",
            ),
            (
                "WHERE id = 'a' AND id = 'b' ORDER BY v ANN OF ? LIMIT 3",
                "more than one relation",
            ),
            (
                "ORDER BY v ANN OF ? PER PARTITION LIMIT 1 LIMIT 3",
                "per-partition",
            ),
            (
                "ORDER BY v ANN OF ? LIMIT 3 WITH ann_options = {'rerank_k': 20}",
                "'rerank_k' is not supported",
            ),
            (
                "ORDER BY v ANN OF ? LIMIT 3 WITH ann_options = {'exact': 2}",
                "Expected true or false",
            ),
            (
                "ORDER BY v ANN OF ? LIMIT 3 WITH included_indexes = 'x'",
                "Unknown property",
            ),
            (
                "ORDER BY v ANN OF ? LIMIT 3 USING TIMEOUT ?",
                "bind markers",
            ),
        ] {
            let error = plan(&format!("SELECT id FROM films {text}")).unwrap_err();
            assert!(error.message.contains(named), "{text}: {error}");
        }
        for selection in ["count(*)", "max(name)", "CAST(min(id) AS text)"] {
            let text = format!("SELECT {selection} FROM films ORDER BY v ANN OF ? LIMIT 3");
            let error = plan(&text).unwrap_err();
            assert!(
                error.message.contains("aggregation"),
                "{selection}: {error}"
            );
        }
    }

    #[test]
    fn markers_of_where_are_told_with_the_types_of_their_columns() {
        let text = "SELECT id FROM films WHERE id IN ? AND token(id) > :t AND name = ? \
                    ORDER BY v ANN OF :v LIMIT ? ALLOW FILTERING";
        let plan = plan(text).unwrap().unwrap();
        let variables = plan.variables(&[]).columns;
        let told: Vec<String> = variables
            .iter()
            .map(|spec| format!("{} {}", spec.name, spec.cql_type))
            .collect();
        let expected = [
            "in(id) list<text>",
            "t bigint",
            "name text",
            "v vector<float, 3>",
            "[limit] int",
        ];
        assert_eq!(told, expected);
        assert!(plan.read.text.starts_with("SELECT id \n, \"name\" FROM"));
        let kept: Vec<bool> = plan.conditions.all.iter().map(|one| one.is_kept).collect();
        assert_eq!(kept, [true, true, false]);
    }

    #[test]
    fn markers_are_told_in_the_order_of_the_text() {
        let text = "SELECT similarity_cosine(v, ?) FROM films ORDER BY v ANN OF ? LIMIT :n";
        let plan = plan(text).unwrap().unwrap();
        assert_eq!(plan.selection_markers, 1);
        let selection = ColumnSpec {
            keyspace: "shop".into(),
            table: "films".into(),
            name: "arg1".into(),
            cql_type: CqlType::Text,
        };
        let variables = plan.variables(&[selection]);
        let told: Vec<String> = variables
            .columns
            .iter()
            .map(|spec| format!("{} {}", spec.name, spec.cql_type))
            .collect();
        assert_eq!(told, ["arg1 text", "v vector<float, 3>", "n int"]);
    }
}
