//! Makes the plan of a query by searches from the text of a statement.

mod searched;

use std::borrow::Cow;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;

use cql::ast::{ProjectionList, Select, Selector, Statement};
use cql::error::CqlError;
use cql::parser::{parse_statement, selection_text};
use cql::wire::{ColumnSpec, ColumnsMetadata};
use index::CandidateRule;
use query::bind::{PrepareContext, PreparedTerm};
use query::resolve::TableColumns;
use query::{
    AnnOptions, RowOrdering, SearchCallPlan, SearchForm, SearchKind, SearchTerm, SearchedOrdering,
    bounds, clauses, limit,
};
use slow_statements::{ExecutedStatement, beginning};
use uuid::Uuid;

pub(super) use self::searched::WordsInWhere;
use self::searched::{CallIndexes, SearchedTable, uses_searches};
use super::conditions::{QueryConditions, known_columns};
use super::covered::IndexOnlyAnswer;
use super::selection::PlannedSelection;
use crate::catalog::{DefinedIndex, IndexCatalogSnapshot, LoggedTable};
use crate::key_read::{KeyRead, NeededColumns, TableRead};

/// The plan of a query by searches that uses indexes of the gateway's. It is made by one snapshot
/// of the catalog.
#[derive(Debug)]
pub(crate) struct AnnPlan {
    /// The beginning of the client's statement, as the log of slow ones shows it.
    statement: String,
    /// The table whose rows are read.
    pub(super) table: Arc<LoggedTable>,
    /// The order of the rows; `None` for all rows that match words, in no order.
    pub(super) order: Option<PlannedOrder>,
    /// The words of WHERE.
    pub(super) words: Vec<WordsInWhere>,
    /// The number of rows to return; a query with an order has one.
    pub(super) limit: Option<PreparedTerm>,
    /// The other conditions of WHERE.
    pub(super) conditions: QueryConditions,
    /// The selection of the client.
    pub(super) selection: PlannedSelection,
    /// The names of all bind markers in the order of the text; `None` for `?`.
    pub(super) markers: Vec<Option<String>>,
    /// The specs of the markers; `None` for those of what the cluster reads.
    variables: Vec<Option<ColumnSpec>>,
    /// The statement that reads rows by their keys.
    pub(super) read: KeyRead,
    /// The statement that reads all rows, for a query whose rows the index can't name.
    pub(super) scan: TableRead,
    /// The answer by what the index keeps; `None` if rows have to be read in any case.
    pub(super) covered: Option<IndexOnlyAnswer>,
}

/// The order of the rows of a query.
#[derive(Debug)]
pub(super) struct PlannedOrder {
    /// The calls of searches, and how those of the ordering make one order.
    pub(super) searches: SearchCallPlan,
    /// The index of each call.
    pub(super) calls: Vec<IndexedCall>,
    /// The options of searches for vectors.
    pub(super) options: AnnOptions,
    /// The form of the query.
    pub(super) form: SearchForm,
}

/// A call of a search with the index that serves it.
#[derive(Clone, Debug)]
pub(super) struct IndexedCall {
    /// The index that is searched.
    pub(super) index: Arc<DefinedIndex>,
    /// The number of candidates to request from the index, and whether they are scored again.
    pub(super) candidates: CandidateRule,
    /// The position of the column among those of searches.
    pub(super) searched: usize,
}

impl fmt::Display for AnnPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (call, term) in self.calls() {
            let DefinedIndex { name, target, .. } = &*call.index;
            let column = &target.column;
            let exact = match &self.order {
                Some(order) if order.options.exact => " exactly",
                _ => "",
            };
            match term.kind() {
                SearchKind::Vector => {
                    writeln!(f, "nearest {column} by index {name}{exact}")?;
                }
                SearchKind::Words => writeln!(f, "best {column} by index {name}")?,
            }
        }
        for words in &self.words {
            writeln!(
                f,
                "words by index {}: {}",
                words.index.name, words.relation.text
            )?;
        }
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
    /// Plans a statement; `None` if it is no query by searches, or uses no index in `snapshot`. The
    /// cluster answers such a statement. `keyspace` is the keyspace in use.
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
        let Some(keyspace) = select.table.keyspace.as_deref().or(keyspace) else {
            return Ok(None);
        };
        let Some(table) = snapshot.logged_table(keyspace, &select.table.name) else {
            return without_index(&select);
        };
        let searched = SearchedTable {
            select: &select,
            table: &table,
            snapshot,
        };
        if !searched.is_meant() {
            return without_index(&select);
        }
        let ordering = match RowOrdering::of(&select)? {
            RowOrdering::Searched(ordering) => Some(ordering),
            RowOrdering::Clustering(_) if uses_searches(&select) => None,
            RowOrdering::Clustering(_) => return Ok(None),
        };
        let mut ctx = PrepareContext::new(&table.keyspace, &table.name, parsed.markers.len());
        let planned = searched.plan(text, ordering.as_ref(), &mut ctx)?;
        let of_cluster = &planned.selection.markers;
        let variables = own_variables(ctx, of_cluster)?;
        Ok(Some(AnnPlan {
            statement: beginning(text).to_owned(),
            markers: parsed.markers,
            variables,
            ..planned
        }))
    }

    /// The statement of a client at this address, for the log of slow ones.
    pub(crate) fn executed(&self, client: SocketAddr) -> ExecutedStatement<'_> {
        ExecutedStatement {
            // No table shows it.
            id: Uuid::nil(),
            client,
            // The client logs in to the cluster.
            role: None,
            keyspace: Some(Cow::Borrowed(self.table.keyspace.as_str())),
            text: Cow::Borrowed(self.statement.as_str()),
            plan: Some(self.to_string()),
        }
    }

    /// The calls of searches, with the indexes that serve them.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&IndexedCall, &SearchTerm)> {
        let order = self.order.iter();
        order.flat_map(|order| order.calls.iter().zip(&order.searches.calls))
    }

    /// The index that errors of searches name.
    pub(super) fn first_index(&self) -> Option<&DefinedIndex> {
        let of_call = self.calls().map(|(call, _)| &*call.index).next();
        of_call.or_else(|| self.words.first().map(|words| &*words.index))
    }

    /// The form of the query, for messages.
    pub(super) fn form(&self) -> SearchForm {
        let order = self.order.as_ref();
        order.map_or(SearchForm::Words, |order| order.form)
    }

    /// The bind markers as they are reported to clients. `selection` describes the markers of what
    /// the cluster reads, as the cluster does.
    pub(super) fn variables(&self, selection: &[ColumnSpec]) -> ColumnsMetadata {
        let mut of_cluster = selection.iter();
        let variables = self.variables.iter();
        let columns = variables.filter_map(|own| own.as_ref().or_else(|| of_cluster.next()));
        ColumnsMetadata {
            columns: columns.cloned().collect(),
        }
    }
}

/// The answer to a statement on a table without an index of the gateway's: the cluster has it, but
/// for words in WHERE or ORDER BY, which the cluster has no grammar for.
fn without_index(select: &Select) -> Result<Option<AnnPlan>, CqlError> {
    match searched::words_of_rows(select) {
        Some(column) => Err(clauses::no_text_index(&column)),
        None => Ok(None),
    }
}

/// The specs of the markers that the gateway evaluates. The cluster reports those at the positions
/// `of_cluster`.
fn own_variables(
    ctx: PrepareContext,
    of_cluster: &[usize],
) -> Result<Vec<Option<ColumnSpec>>, CqlError> {
    let mut positions = ctx.variables.iter().enumerate();
    if positions.any(|(at, own)| own.is_none() && !of_cluster.contains(&at)) {
        return Err(CqlError::invalid(
            "bind markers may stand in the selection, in WHERE, for what searches look for and for LIMIT only",
        ));
    }
    Ok(ctx.variables)
}

impl SearchedTable<'_> {
    /// Plans all but the markers.
    fn plan(
        &self,
        text: &str,
        ordering: Option<&SearchedOrdering<'_>>,
        ctx: &mut PrepareContext,
    ) -> Result<AnnPlan, CqlError> {
        let SearchedTable { select, table, .. } = *self;
        let columns = known_columns(table);
        let resolvable = TableColumns {
            keyspace: &table.keyspace,
            table: &table.name,
            columns: &columns,
        };
        let mut calls = CallIndexes::new(*self);
        if let Some(ordering) = ordering {
            calls.plan_order(ordering, ctx)?;
        }
        if select.json {
            return Err(CqlError::invalid(
                "SELECT JSON is not supported by Annulus yet",
            ));
        }
        self.check_clauses(ordering)?;
        let written = selection_text(text)?;
        let selection = PlannedSelection::of(select, &written, table, &mut calls, ctx)?;
        let words = calls.words(resolvable, ctx)?;
        if ordering.is_none() && words.is_empty() {
            return Err(CqlError::invalid(
                "A search in the selection needs one by which rows are found: add ORDER BY a search, or WHERE \
                 BM25(column, words) > 0",
            ));
        }
        let searching = calls.searching(&words);
        let conditions = QueryConditions::of(select, table, searching, self.snapshot, ctx)?;
        let CallIndexes {
            order, searched, ..
        } = calls;
        let limit = limit::prepare(select.limit.as_ref(), limit::LIMIT, ctx)?;
        if let Some(order) = &order
            && limit.is_none()
        {
            return Err(bounds::no_limit(order.form));
        }
        let needed = NeededColumns {
            searched: &searched,
            checked: &conditions.checked,
        };
        let (text, read) = (&selection.text, &selection.read);
        let is_plain = words.is_empty() && selection.computed.is_empty();
        let order_alone = order.as_ref().filter(|_| is_plain);
        let covered = order_alone.and_then(|order| self.covered(order, &conditions));
        Ok(AnnPlan {
            read: KeyRead::of(text, read, table, needed),
            scan: TableRead::of(text, read, table, needed),
            table: table.clone(),
            statement: String::new(),
            markers: Vec::new(),
            variables: Vec::new(),
            order,
            words,
            limit,
            conditions,
            selection,
            covered,
        })
    }

    /// The answer by what the index of a single search keeps; `None` if rows have to be read.
    fn covered(
        &self,
        order: &PlannedOrder,
        conditions: &QueryConditions,
    ) -> Option<IndexOnlyAnswer> {
        match &order.calls[..] {
            [call] if order.searches.is_single() => {
                let (index, candidates) = (&call.index, &call.candidates);
                IndexOnlyAnswer::of(self.select, self.table, index, candidates, conditions)
            }
            _ => None,
        }
    }

    /// Checks the clauses that such a query can't have.
    fn check_clauses(&self, ordering: Option<&SearchedOrdering<'_>>) -> Result<(), CqlError> {
        let select = self.select;
        let aggregates = clauses::calls_aggregate(&select.projection);
        let Some(ordering) = ordering else {
            let fault = if select.per_partition_limit.is_some() {
                "BM25 queries do not support per-partition limits"
            } else if select.distinct {
                "BM25 queries do not support DISTINCT"
            } else if !select.group_by.is_empty() || aggregates && !counts_rows(select) {
                "Through a gateway a BM25 query without an ordering takes no aggregate but count(*) by itself, \
                 and no GROUP BY"
            } else if !select.order_by.is_empty() {
                "BM25() in WHERE does not support an ordering by columns: order by BM25(column, words), by another \
                 search, or not at all"
            } else {
                return Ok(());
            };
            return Err(CqlError::invalid(fault));
        };
        let vectors = ordering.searches.iter();
        let vectors = vectors.filter(|call| call.kind == SearchKind::Vector);
        let columns: Vec<&str> = vectors.map(|call| call.column).collect();
        clauses::check(select, ordering.form(), &columns, aggregates)
    }
}

/// Whether a selection is the number of rows alone.
fn counts_rows(select: &Select) -> bool {
    match &select.projection {
        ProjectionList::Items(items) => {
            matches!(&items[..], [item] if item.selector == Selector::CountAll)
        }
        ProjectionList::All => false,
    }
}

#[cfg(test)]
mod word_tests;

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
            let (call, term) = plan.calls().next().expect(text);
            assert_eq!(call.index.name, "newer", "{text}");
            let is_of_v = matches!(term, SearchTerm::Vector(vector) if vector.dimensions == 3);
            assert!(is_of_v, "{text}");
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
            let exact = plan.order.as_ref().expect("an order").options.exact;
            assert_eq!(plan.to_string().contains("exactly"), exact);
            exact
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
        assert_eq!(plan.selection.markers, [0]);
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
