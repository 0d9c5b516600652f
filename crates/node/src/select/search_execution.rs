//! One execution of a query by searches: its values, the search that it is, and the conditions of
//! WHERE in forms for the index service and for rows.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use query::bind::StatementClock;
use query::search::{
    IndexOrdering, RanksRows, RowSearch, SearchCursor, SearchFreshness, SearchPredicate,
    SearchRanking, VectorOrdering, WordCondition, WordOrdering,
};
use query::values::EvaluationInputs;
use query::{SearchTerm, SearchedFor, SearchesOfExecution, condition, reads_one_replica};
use schema::Column;
use store_api::ColumnsPredicate;

use super::collector::{RowCollector, RowSink};
use super::composed_condition::{PlacedCondition, is_searchable};
use super::filter::{self, ResidualFilter};
use super::hits::HitSlots;
use super::page::ResultPage;
use super::paging::PagingState;
use super::plan::ResolvedSelect;
use super::searches::{SearchOrder, SearchTarget, WordTarget};
use crate::database::CqlDatabase;
use crate::statement::ExecutionParameters;

/// One execution of a query by searches.
pub(super) struct SearchExecution<'a> {
    pub database: &'a CqlDatabase,
    pub plan: &'a Arc<ResolvedSelect>,
    pub order: &'a SearchOrder,
    pub parameters: &'a ExecutionParameters,
    clock: &'a StatementClock,
    /// The values of the terms in the selection; `None` for null.
    terms: Vec<Option<Bytes>>,
    /// The filters that a row must pass, all of them: those of the conditions of WHERE in their
    /// order, then the condition in addition to WHERE.
    filters: Vec<ResidualFilter>,
    /// The condition in addition to WHERE, if an index can search by it.
    added: Option<ColumnsPredicate>,
    limit: usize,
    /// The searches, no two of which are equal.
    pub searches: SearchesOfExecution,
    /// The conditions of WHERE on words, and what they look for.
    pub words: Vec<(&'a SearchTarget, String)>,
    /// The values of searches in the selection.
    pub slots: HitSlots<'a>,
}

impl<'a> SearchExecution<'a> {
    /// Binds the values.
    ///
    /// # Errors
    /// Values that don't fit their places.
    pub(super) fn new(
        database: &'a CqlDatabase,
        plan: &'a Arc<ResolvedSelect>,
        order: &'a SearchOrder,
        parameters: &'a ExecutionParameters,
        clock: &'a StatementClock,
        limit: usize,
    ) -> Result<SearchExecution<'a>, CqlError> {
        let values = EvaluationInputs {
            bound: &parameters.values,
            clock,
        };
        let searches = match &order.plan {
            Some(planned) => planned.evaluate(limit, values)?,
            None => SearchesOfExecution {
                searches: Vec::new(),
                of_call: Vec::new(),
                ranking: SearchRanking::Single,
                candidates: None,
            },
        };
        for (call, looked_for) in &searches.searches {
            let term = order.plan.as_ref().map(|planned| &planned.calls[*call]);
            if let (Some(SearchTerm::Vector(term)), SearchedFor::Vector(vector)) =
                (term, looked_for)
            {
                term.check_length(vector, order.targets[*call].candidates.metric)?;
            }
        }
        let conditions = order.conditions.iter();
        let relations = conditions.map(|condition| &condition.relation);
        let words = order.words.iter();
        let words = words.map(|WordTarget { relation, target }| {
            Ok::<_, CqlError>((target, relation.words.evaluate(values)?))
        });
        let mut filters = filter::bind_all(relations, values)?;
        let mut added = None;
        if let Some(condition) = &parameters.condition {
            let table = &*plan.selected.table;
            if is_searchable(table, order, condition)? {
                added = Some(condition.predicate.clone());
            }
            let placed = PlacedCondition::of(table, &condition.predicate)?;
            filters.push(ResidualFilter::Composed(placed));
        }
        let mut execution = SearchExecution {
            terms: values.selection(&plan.projection.terms)?,
            filters,
            added,
            words: words.collect::<Result<_, _>>()?,
            slots: HitSlots::evaluate(
                &plan.selected.table.keyspace,
                order,
                &searches.of_call,
                values,
            )?,
            database,
            plan,
            order,
            parameters,
            clock,
            limit,
            searches,
        };
        execution.drop_implied_words();
        Ok(execution)
    }

    /// Drops the conditions on words that rows satisfy which the one search for words names.
    fn drop_implied_words(&mut self) {
        if let ([(call, SearchedFor::Words(query))], SearchRanking::Single) =
            (&self.searches.searches[..], &self.searches.ranking)
        {
            let place = self.order.targets[*call].place;
            self.words
                .retain(|(target, words)| target.place != place || words != query);
        }
    }

    /// The value of the evaluation of terms.
    pub(super) fn values(&self) -> EvaluationInputs<'_> {
        EvaluationInputs {
            bound: &self.parameters.values,
            clock: self.clock,
        }
    }

    /// Whether there is one search, whose order is that of the answer.
    pub(super) fn is_single(&self) -> bool {
        self.searches.searches.len() == 1 && self.searches.ranking == SearchRanking::Single
    }

    /// An ordering by words, or their condition.
    pub(super) fn word_ordering(&self, target: &'a SearchTarget, query: &str) -> WordOrdering<'a> {
        WordOrdering {
            keyspace: &self.plan.selected.table.keyspace,
            index: &target.index.name,
            query: query.to_owned(),
            local_key: &target.index.local_key,
        }
    }

    /// The conditions that indexes may search by, but for those on words.
    pub(super) fn predicates(&self) -> Vec<SearchPredicate> {
        let order = self.order;
        let partition_key = order.key_columns[..order.partition_columns].iter();
        let partition_key: Vec<String> = partition_key.map(|column| column.name.clone()).collect();
        let of_where = condition::predicates(&order.conditions, &self.filters, |filter, of| {
            Some(SearchPredicate {
                predicate: filter.predicate(of, &partition_key)?,
                // The index service itself leaves out conditions on columns that it is to keep but
                // does not yet.
                is_named: true,
            })
        });
        let added = self.added.clone().map(|predicate| SearchPredicate {
            predicate,
            is_named: true,
        });
        of_where.into_iter().chain(added).collect()
    }

    /// The search that the query is.
    pub(super) fn search(&self) -> RowSearch<'_> {
        let order = self.order;
        let searches = self.searches.searches.iter().map(|(call, looked_for)| {
            let target = &order.targets[*call];
            match looked_for {
                SearchedFor::Vector(vector) => IndexOrdering::Vector(VectorOrdering {
                    keyspace: &self.plan.selected.table.keyspace,
                    index: &target.index.name,
                    vector: vector.clone(),
                    candidates: &target.candidates,
                    exact: order.options.exact,
                }),
                SearchedFor::Words(query) => {
                    IndexOrdering::Words(self.word_ordering(target, query))
                }
            }
        });
        let mut predicates = self.predicates();
        let mut words = Vec::with_capacity(self.words.len());
        for (target, query) in &self.words {
            words.push(WordCondition {
                words: self.word_ordering(target, query),
                predicate: predicates.len(),
            });
            predicates.push(SearchPredicate {
                predicate: word_predicate(target, query),
                is_named: true,
            });
        }
        let covered = order
            .covered
            .as_ref()
            .filter(|_| self.may_do_without_rows());
        let names = |columns: &Vec<Column>| {
            let names = columns.iter().map(|column| column.name.clone());
            names.collect()
        };
        RowSearch {
            searches: searches.collect(),
            ranking: self.searches.ranking.clone(),
            candidates: self.searches.candidates,
            predicates,
            conditions: self.filters.len() + words.len(),
            words,
            limit: self.limit,
            cursor: SearchCursor::default(),
            freshness: SearchFreshness::default(),
            returned: covered.map(names),
            ranks_rows: RanksRows::Always,
        }
    }

    /// Whether an index may answer by its values. It knows no other present than this
    /// machine's.
    fn may_do_without_rows(&self) -> bool {
        reads_one_replica(self.parameters.consistency)
            && self.database.stores.are_local()
            && self.parameters.client_now_s.is_none()
            // Its columns need not be among those that the index would return.
            && self.parameters.condition.is_none()
    }

    /// An empty collector of the answer's rows, of which LIMIT are enough.
    pub(super) fn page(&self) -> RowCollector {
        let page = ResultPage::new(None, &self.parameters.memory);
        self.collector(RowSink::Page(page), Some(self.limit as u32))
    }

    pub(super) fn collector(&self, output: RowSink, remaining: Option<u32>) -> RowCollector {
        RowCollector {
            plan: self.plan.clone(),
            clock: self.clock.clone(),
            terms: self.terms.clone(),
            filters: self.filters.clone(),
            hits: Vec::new(),
            output,
            memory: self.parameters.memory.clone(),
            held: self.parameters.memory.charge(),
            returned_by_slot: Vec::new(),
            per_partition_max: None,
            partitions: None,
            state: PagingState {
                remaining,
                ..PagingState::default()
            },
            has_moved: false,
        }
    }
}

/// The condition on words as an index searches by it.
pub(super) fn word_predicate(target: &SearchTarget, query: &str) -> ColumnsPredicate {
    ColumnsPredicate::Words {
        column: target.index.column.clone(),
        index: target.index.name.clone(),
        query: query.to_owned(),
    }
}
