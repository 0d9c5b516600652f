//! The table of a query by searches, and the indexes that serve its calls.

use std::sync::Arc;

use cql::ast::{ComparisonSubject, FunctionCall, OrderByItem, Select, Selector};
use cql::error::CqlError;
use index::{CandidateRule, SearchClass};
use query::bind::PrepareContext;
use query::resolve::TableColumns;
use query::{
    IndexDefinition as _, RowOrdering, SearchCall, SearchCallPart, SearchCallPlan, SearchKind,
    SearchTerm, SearchWords, SearchedOrdering, WordRelation, clauses, serving, similarity_columns,
    word_columns,
};
use value::CqlType;

use super::{IndexedCall, PlannedOrder};
use crate::catalog::{DefinedIndex, IndexCatalogSnapshot, LoggedTable};
use crate::key_read::SearchedColumn;
use crate::vector_search::conditions::is_search;
use crate::vector_search::selection::{CallPlanner, ComputedValue, TextCall, without_ordering};

/// The table of a statement, as a snapshot knows it.
#[derive(Clone, Copy)]
pub(super) struct SearchedTable<'s> {
    /// The statement.
    pub(super) select: &'s Select,
    /// The table.
    pub(super) table: &'s Arc<LoggedTable>,
    /// The snapshot.
    pub(super) snapshot: &'s IndexCatalogSnapshot,
}

/// Words of WHERE with the index that serves them.
#[derive(Debug)]
pub(in crate::vector_search) struct WordsInWhere {
    /// The relation.
    pub(in crate::vector_search) relation: WordRelation,
    /// The index on the texts.
    pub(in crate::vector_search) index: Arc<DefinedIndex>,
    /// The position of the column among those of searches.
    pub(in crate::vector_search) searched: usize,
}

/// The indexes of the calls of a statement, and the columns that the calls look at.
pub(super) struct CallIndexes<'s> {
    of: SearchedTable<'s>,
    /// The order with its calls and those of the selection; `None` without an order.
    pub(super) order: Option<PlannedOrder>,
    /// The columns of all searches.
    pub(super) searched: Vec<SearchedColumn>,
}

/// Whether a statement searches for words, or in a way that only the gateway knows.
pub(super) fn uses_searches(select: &Select) -> bool {
    let is_ours = |function: &FunctionCall<Selector>| {
        let is_native = matches!(function.keyspace.as_deref(), None | Some("system"));
        // The cluster knows this one, too.
        let is_known = function.name == "ann";
        let is_call = !matches!(SearchCall::of(function), Ok(None)) || function.name == "rrf";
        is_native && is_call && !is_known
    };
    let by_scores = |ordering: &OrderByItem| match ordering {
        OrderByItem::Column { .. } | OrderByItem::Ann { .. } => false,
        OrderByItem::Function { function, .. } => is_ours(function),
        OrderByItem::Expression { .. } => true,
    };
    let mut relations = select.relations.iter();
    relations.any(|relation| is_search(&relation.subject))
        || !word_columns(select).is_empty()
        || select.order_by.iter().any(by_scores)
}

/// The first column by whose words a statement finds or orders rows.
pub(super) fn words_of_rows(select: &Select) -> Option<String> {
    let of_where = select.relations.iter().find_map(|relation| {
        let ComparisonSubject::Function(call) = &relation.subject else {
            return None;
        };
        SearchCall::of(call).ok().flatten()
    });
    let of_order = || match RowOrdering::of(select) {
        Ok(RowOrdering::Searched(ordering)) => ordering.searches,
        _ => Vec::new(),
    };
    let calls = of_where.into_iter().chain(of_order());
    let mut words = calls.filter(|call| call.kind == SearchKind::Words);
    words.next().map(|call| call.column.to_owned())
}

impl SearchedTable<'_> {
    /// Whether the statement is the gateway's to answer, and not the cluster's.
    pub(super) fn is_meant(&self) -> bool {
        let LoggedTable { keyspace, name, .. } = &**self.table;
        let mut indexes = self.snapshot.indexes(keyspace, name).peekable();
        if indexes.peek().is_none() {
            return false;
        }
        let is_ordered_by = |index: &Arc<DefinedIndex>| {
            let mut columns = similarity_columns(&self.select.order_by);
            columns.any(|column| column == index.target.column)
        };
        uses_searches(self.select) || indexes.any(is_ordered_by)
    }

    /// The index that serves a search, of those of its kind on the column.
    fn index(&self, kind: SearchKind, column: &str) -> Result<Arc<DefinedIndex>, CqlError> {
        let table = self.table;
        let class = match kind {
            SearchKind::Vector => SearchClass::Vector,
            SearchKind::Words => SearchClass::FullText,
        };
        let indexes = self.snapshot.indexes(&table.keyspace, &table.name);
        let meant: Vec<&Arc<DefinedIndex>> = indexes
            .filter(|index| index.target.column == column && index.class() == Some(class))
            .collect();
        let is_kept = |index: &DefinedIndex, name: &str| {
            let mut key = table.primary_key().iter();
            let is_of_key = key.any(|column| column.name == name);
            is_of_key || index.names(name) || table.is_kept_unnamed(name)
        };
        let found = serving(meant.iter().copied(), self.select, is_kept);
        found.cloned().ok_or_else(|| match kind {
            SearchKind::Vector => clauses::no_vector_index(column),
            SearchKind::Words => clauses::no_text_index(column),
        })
    }

    /// The type of a column.
    fn cql_type(&self, column: &str) -> Result<&CqlType, CqlError> {
        let LoggedTable { keyspace, name, .. } = &**self.table;
        let found = self.table.column(column);
        let cql_type = found.and_then(|column| column.cql_type.as_ref());
        cql_type.ok_or_else(|| clauses::unknown_column(column, (keyspace, name)))
    }
}

impl<'s> CallIndexes<'s> {
    /// Begins without calls.
    pub(super) fn new(of: SearchedTable<'s>) -> CallIndexes<'s> {
        CallIndexes {
            of,
            order: None,
            searched: Vec::new(),
        }
    }

    /// Plans the calls of an ordering.
    ///
    /// # Errors
    /// Calls without an index, and terms that don't fit.
    pub(super) fn plan_order(
        &mut self,
        ordering: &SearchedOrdering<'_>,
        ctx: &mut PrepareContext,
    ) -> Result<(), CqlError> {
        let needs_values = matches!(ordering.ranking, query::WrittenRanking::Expression(_));
        let mut calls = Vec::with_capacity(ordering.searches.len());
        let searches = SearchCallPlan::prepare(ordering, ctx, |call, ctx| {
            let (indexed, term) = self.call(call, needs_values, ctx)?;
            calls.push(indexed);
            Ok(term)
        })?;
        self.order = Some(PlannedOrder {
            searches,
            calls,
            options: ordering.options,
            form: ordering.form(),
        });
        Ok(())
    }

    /// Plans the words of WHERE.
    ///
    /// # Errors
    /// Relations that make no sense, and columns without a full-text index.
    pub(super) fn words(
        &mut self,
        table: TableColumns<'_>,
        ctx: &mut PrepareContext,
    ) -> Result<Vec<WordsInWhere>, CqlError> {
        let mut words = Vec::new();
        for written in &self.of.select.relations {
            if let Some(relation) = WordRelation::of(table, written, ctx)? {
                let column = relation.words.column.as_str();
                words.push(WordsInWhere {
                    index: self.of.index(SearchKind::Words, column)?,
                    searched: self.place(column, true),
                    relation,
                });
            }
        }
        Ok(words)
    }

    /// The indexes that search by the rest of WHERE.
    pub(super) fn searching(&self, words: &[WordsInWhere]) -> Vec<Arc<DefinedIndex>> {
        match &self.order {
            Some(order) => order.calls.iter().map(|call| call.index.clone()).collect(),
            // The first of the words name the rows.
            None => words
                .iter()
                .take(1)
                .map(|words| words.index.clone())
                .collect(),
        }
    }

    fn call(
        &mut self,
        call: &SearchCall<'_>,
        needs_value: bool,
        ctx: &mut PrepareContext,
    ) -> Result<(IndexedCall, SearchTerm), CqlError> {
        let cql_type = self.of.cql_type(call.column)?;
        let term = SearchTerm::prepare(call.kind, &call.term, (call.column, cql_type), ctx)?;
        let index = self.of.index(call.kind, call.column)?;
        let candidates = CandidateRule::of(|name| match call.kind {
            SearchKind::Vector => index.options.get(name).map(String::as_str),
            // The options of a full-text index are others.
            SearchKind::Words => None,
        });
        let indexed = IndexedCall {
            index,
            candidates,
            searched: self.place(call.column, needs_value || candidates.rescoring.is_some()),
        };
        Ok((indexed, term))
    }

    fn text_call(
        &mut self,
        call: &SearchCall<'_>,
        ctx: &mut PrepareContext,
    ) -> Result<TextCall, CqlError> {
        let cql_type = self.of.cql_type(call.column)?;
        Ok(TextCall {
            words: SearchWords::prepare(&call.term, call.column, cql_type, ctx)?,
            index: self.of.index(SearchKind::Words, call.column)?,
            searched: self.place(call.column, true),
        })
    }

    /// The position of a column among those of searches.
    fn place(&mut self, name: &str, is_needed: bool) -> usize {
        let mut known = self.searched.iter();
        let place = known.position(|column| column.name == name);
        let place = place.unwrap_or_else(|| {
            self.searched.push(SearchedColumn {
                name: name.to_owned(),
                is_needed: false,
            });
            self.searched.len() - 1
        });
        self.searched[place].is_needed |= is_needed;
        place
    }
}

impl CallPlanner for CallIndexes<'_> {
    fn plan(
        &mut self,
        call: &SearchCall<'_>,
        ctx: &mut PrepareContext,
    ) -> Result<ComputedValue, CqlError> {
        if call.part == SearchCallPart::Highlight {
            return self.text_call(call, ctx).map(ComputedValue::Highlight);
        }
        let Some(mut order) = self.order.take() else {
            return match (call.kind, call.part) {
                (SearchKind::Words, SearchCallPart::Score) => {
                    self.text_call(call, ctx).map(ComputedValue::Score)
                }
                _ => Err(without_ordering()),
            };
        };
        let (indexed, term) = self.call(call, order.searches.is_expression(), ctx)?;
        order.calls.push(indexed);
        let value = ComputedValue::Hit {
            call: order.searches.add(term),
            part: call.part,
        };
        self.order = Some(order);
        Ok(value)
    }
}
