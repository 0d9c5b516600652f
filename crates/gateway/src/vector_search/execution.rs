//! One execution of a query by searches: its values, the search that it is, what it reads from the
//! cluster, and the form of its answer.

use std::num::NonZeroU32;

use bytes::Bytes;
use clock::{Clock, SystemClock};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BoundValue, ColumnSpec, MarkerValues, QueryParameters, Request, Response, ResponseContext,
};
use query::bind::StatementClock;
use query::row_filter::{self, BoundRelation};
use query::search::{
    IndexOrdering, RanksRows, RowSearch, SearchCursor, SearchPredicate, SearchRanking,
    VectorOrdering, WordCondition, WordOrdering,
};
use query::values::EvaluationInputs;
use query::{
    SearchTerm, SearchedFor, SearchesOfExecution, bounds, condition, limit, reads_one_replica,
    refused,
};
use store_api::{ClientError, ColumnsPredicate};
use value::timeuuid;

use super::computed_item::BoundItem;
use super::conditions::{self, ConditionColumn};
use super::freshness::FreshSearches;
use super::plan::WordsInWhere;
use super::row::{self, AnswerRow, Row};
use super::{AnnPlan, AnnStatement};
use crate::catalog::DefinedIndex;
use crate::key_read::ReadRowLayout;

/// The age up to which an index counts as new, so that an index service may not know it yet. Index
/// services look at the schema every second, and one that was away may be late. Microseconds.
const NEW_FOR_MICROS: i64 = 30_000_000;

/// One execution of a query.
pub(super) struct AnnExecution<'a> {
    pub(super) plan: &'a AnnPlan,
    /// The searches; `None` for all rows that match words.
    pub(super) searches: Option<SearchesOfExecution>,
    /// The words of WHERE.
    pub(super) words: Vec<BoundWords<'a>>,
    /// The number of rows to return at most; `None` if there is no limit.
    pub(super) limit: Option<NonZeroU32>,
    /// The conditions that a row must satisfy, all of them but words.
    pub(super) filters: Vec<BoundRelation<ConditionColumn>>,
    /// The values of the markers that the cluster gets for what it reads.
    pub(super) selection: Vec<BoundValue>,
    /// The items that the gateway computes.
    pub(super) computed: Vec<BoundItem<'a>>,
    /// The parameters of the client's request, without the values.
    pub(super) parameters: QueryParameters,
    /// Whether the client wants a trace.
    pub(super) traced: bool,
    /// Whether the client knows the columns of the answer.
    pub(super) skips_metadata: bool,
    /// The id of the columns of the answer, if the client expects others.
    pub(super) new_columns: Option<Bytes>,
}

/// Words of WHERE with their value.
pub(super) struct BoundWords<'a> {
    /// The words as they are planned.
    pub(super) condition: &'a WordsInWhere,
    /// The text of the query.
    pub(super) query: String,
}

/// The form in which rows are requested from the cluster.
#[derive(Clone, Copy)]
pub(super) enum ReadBy<'a> {
    /// QUERY with the text of the statement.
    Text,
    /// EXECUTE of the prepared statement.
    Id(&'a AnnStatement),
}

/// An answer to the client.
pub(super) struct ClientAnswer<'r> {
    /// The rows.
    pub(super) rows: &'r [AnswerRow],
    /// The columns that the cluster reads for the client.
    pub(super) read: &'r [ColumnSpec],
    /// The paging state of the next page; `None` if this is the last.
    pub(super) next: Option<Bytes>,
}

impl<'a> AnnExecution<'a> {
    pub(super) fn new<'n>(
        plan: &'a AnnPlan,
        mut parameters: QueryParameters,
        name: impl Fn(usize) -> Option<&'n str>,
        traced: bool,
    ) -> Result<AnnExecution<'a>, CqlError> {
        let values =
            std::mem::replace(&mut parameters.values, MarkerValues::Positional(Vec::new()));
        let values = values.in_order(plan.markers.len(), name)?;
        let clock = StatementClock::of_none();
        let evaluated = EvaluationInputs {
            bound: &values,
            clock: &clock,
        };
        let limit = limit::evaluate(plan.limit.as_ref(), evaluated)?;
        if plan.order.is_some() {
            bounds::checked_limit(limit, plan.form())?;
        }
        let relations = plan.conditions.all.iter().map(|one| &one.relation);
        let place = |column: &schema::Column| {
            let partition_columns = plan.table.partition_key_count;
            plan.conditions.place(column, partition_columns)
        };
        let filters = row_filter::bind_all(relations, place, evaluated)?;
        let words = plan.words.iter().map(|condition| {
            Ok(BoundWords {
                condition,
                query: condition.relation.words.evaluate(evaluated)?,
            })
        });
        let words = words.collect::<Result<Vec<_>, CqlError>>()?;
        let searches = searches(plan, limit, evaluated)?;
        let computed = plan.selection.computed.iter();
        let computed = computed.map(|item| BoundItem::of(item, searches.as_ref(), evaluated));
        let computed = computed.collect::<Result<Vec<_>, CqlError>>()?;
        let selection = plan.selection.markers.iter();
        let selection = selection.filter_map(|position| values.get(*position).cloned());
        Ok(AnnExecution {
            plan,
            searches,
            words,
            limit: limit.and_then(NonZeroU32::new),
            filters,
            selection: selection.collect(),
            computed,
            parameters,
            skips_metadata: false,
            new_columns: None,
            traced,
        })
    }

    /// The search for the rows of the answer; `None` for a query without an order.
    pub(super) fn search(&self, searches: &FreshSearches) -> Option<RowSearch<'_>> {
        let AnnPlan { table, covered, .. } = self.plan;
        let found = self.searches.as_ref()?;
        let of_conditions = self.predicates(&[]).len();
        let words = self.words.iter().enumerate().map(|(at, words)| {
            let index = &words.condition.index;
            WordCondition {
                words: word_ordering(index, words.query.clone()),
                predicate: of_conditions + at,
            }
        });
        let covered = covered.as_ref().filter(|_| {
            // A trace would show nothing, and the index knows no other present than its own.
            let has_own_present = self.parameters.now_in_seconds.is_some();
            let may_read = searches.reader().is_some() && !self.traced && !has_own_present;
            may_read && reads_one_replica(self.parameters.consistency)
        });
        Some(RowSearch {
            searches: self.orderings().collect(),
            ranking: found.ranking.clone(),
            candidates: found.candidates,
            predicates: self.predicates(&self.words),
            words: words.collect(),
            conditions: self.filters.len() + self.words.len(),
            limit: self.limit.map_or(usize::MAX, |limit| limit.get() as usize),
            cursor: SearchCursor::default(),
            freshness: searches.freshness(table.id),
            returned: covered.map(|covered| covered.names()),
            ranks_rows: RanksRows::ForConditions,
        })
    }

    /// The orderings that the searches request from their indexes.
    fn orderings(&self) -> impl Iterator<Item = IndexOrdering<'_>> {
        let order = self.plan.order.as_ref();
        let found = self.searches.iter().flat_map(|found| &found.searches);
        found.filter_map(move |(call, looked_for)| {
            let order = order?;
            let call = order.calls.get(*call)?;
            Some(match looked_for {
                SearchedFor::Vector(vector) => IndexOrdering::Vector(VectorOrdering {
                    keyspace: &call.index.keyspace,
                    index: &call.index.name,
                    vector: vector.clone(),
                    candidates: &call.candidates,
                    exact: order.options.exact,
                }),
                SearchedFor::Words(query) => {
                    IndexOrdering::Words(word_ordering(&call.index, query.clone()))
                }
            })
        })
    }

    /// The conditions that an index may search by: those of columns that it keeps, then `words`.
    pub(super) fn predicates(&self, words: &[BoundWords<'_>]) -> Vec<SearchPredicate> {
        let AnnPlan {
            table, conditions, ..
        } = self.plan;
        let key = table.partition_key().iter();
        let key: Vec<String> = key.map(|column| column.name.clone()).collect();
        let mut predicates =
            condition::predicates(&conditions.all, &self.filters, |filter, relation| {
                Some(SearchPredicate {
                    predicate: filter.predicate(relation, &key)?,
                    is_named: conditions.is_named(relation),
                })
            });
        predicates.extend(words.iter().map(|words| SearchPredicate {
            predicate: ColumnsPredicate::Words {
                column: words.condition.relation.words.column.clone(),
                index: words.condition.index.name.clone(),
                query: words.query.clone(),
            },
            is_named: true,
        }));
        predicates
    }

    /// The conditions on the key of a local index, whose rows make up the statistics of texts.
    pub(super) fn tenant(&self, index: &DefinedIndex) -> Vec<ColumnsPredicate> {
        let predicates = self.predicates(&[]);
        let predicates = predicates.iter().map(|one| &one.predicate);
        word_ordering(index, String::new()).tenant(predicates)
    }

    /// Whether words of WHERE are to be looked for in the texts that are read: the index of another
    /// search may have named a row before its text changed. A search for the same words has named
    /// the row by them.
    pub(super) fn checks_words(&self) -> bool {
        let is_searched = |words: &BoundWords<'_>| {
            let found = self.searches.iter().filter(|found| {
                found.searches.len() == 1 && found.ranking == SearchRanking::Single
            });
            let mut found = found.flat_map(|found| &found.searches);
            found.any(|(call, looked_for)| {
                let order = self.plan.order.as_ref();
                let call = order.and_then(|order| order.calls.get(*call));
                call.is_some_and(|call| call.searched == words.condition.searched)
                    && matches!(looked_for, SearchedFor::Words(query) if *query == words.query)
            })
        };
        !self.words.iter().all(is_searched)
    }

    /// The place of the column of a search in [`ReadRowLayout::searched`].
    pub(super) fn searched(&self, search: usize) -> Option<usize> {
        let (call, _) = self.searches.as_ref()?.searches.get(search)?;
        let order = self.plan.order.as_ref()?;
        Some(order.calls.get(*call)?.searched)
    }

    /// The answer with these rows, of which the client gets what it selected.
    pub(super) fn encoded(
        &self,
        answer: &ClientAnswer<'_>,
        mut context: ResponseContext,
    ) -> (ResponseContext, Response) {
        let (columns, sources) = self.plan.selection.answer(answer.read);
        let next = answer.next.clone();
        let mut encoded = row::encode(answer.rows, &columns, &sources, self.skips_metadata, next);
        encoded.new_metadata_id.clone_from(&self.new_columns);
        let page_size = self.parameters.page_size.map(|rows| rows as usize);
        if let (Some(_), Some(limit)) = (&self.searches, self.limit)
            && bounds::is_cut_short(page_size, limit.get() as usize)
        {
            context
                .warnings
                .push(bounds::paging_warning(self.plan.form()));
        }
        (context, Response::Rows(encoded))
    }

    /// Whether a row satisfies WHERE but words. Of a single search, whether it has a value in the
    /// searched column, too, if it was read with it.
    pub(super) fn is_wanted(&self, row: &Row, layout: &ReadRowLayout) -> bool {
        let partition_columns = self.plan.table.partition_key_count;
        let is_single = self
            .searches
            .as_ref()
            .is_some_and(|found| found.searches.len() == 1);
        let column = self.searched(0).filter(|_| is_single);
        let column = column.and_then(|place| *layout.searched.get(place)?);
        column.is_none_or(|column| row.get(column).is_some_and(Option::is_some))
            && conditions::passes(row, layout, partition_columns, &self.filters)
    }

    /// The error for a search that failed in the index service. A service that does not know a new
    /// index will know it soon, and one that lacks the newest writes will have them; upon these
    /// errors drivers try another gateway, or try again.
    pub(super) fn search_failed(&self, error: ClientError) -> CqlError {
        let Some(index) = self.plan.first_index() else {
            return refused(error);
        };
        let DefinedIndex { name, version, .. } = index;
        if let ClientError::Behind { .. } = error {
            return CqlError::new(
                ErrorKind::Overloaded,
                format!(
                    "the {} {name} has not taken up the newest writes through this gateway in time: try again",
                    index.noun()
                ),
            );
        }
        let indexes = self.plan.calls().map(|(call, _)| &call.index.version);
        let indexes = indexes.chain(self.plan.words.iter().map(|words| &words.index.version));
        let newest = indexes.map(timeuuid::unix_micros).max();
        let newest = newest.unwrap_or_else(|| timeuuid::unix_micros(version));
        let age = SystemClock.now_micros() - newest;
        match error.is_missing() && age < NEW_FOR_MICROS {
            true => CqlError::new(
                ErrorKind::IsBootstrapping,
                format!(
                    "the index {name} was created a moment ago, and the index service does not know it yet: try again"
                ),
            ),
            false => refused(error),
        }
    }

    /// The request that reads a page of all rows, from where another page ended.
    pub(super) fn page(&self, rows: u32, paging_state: Option<Bytes>) -> Request {
        Request::Query {
            statement: self.plan.scan.text.clone(),
            parameters: QueryParameters {
                values: MarkerValues::Positional(self.selection.clone()),
                skip_metadata: false,
                page_size: Some(rows),
                paging_state,
                timestamp: None,
                ..self.parameters.clone()
            },
        }
    }

    /// The request that reads rows with these values.
    pub(super) fn request(&self, by: ReadBy<'_>, values: Vec<BoundValue>) -> Request {
        let parameters = QueryParameters {
            values: MarkerValues::Positional(values),
            skip_metadata: matches!(by, ReadBy::Id(_)),
            page_size: None,
            paging_state: None,
            timestamp: None,
            ..self.parameters.clone()
        };
        match by {
            ReadBy::Id(statement) => Request::Execute {
                id: statement.read_id.clone(),
                result_metadata_id: statement.read_columns_id.clone(),
                parameters,
            },
            ReadBy::Text => Request::Query {
                statement: self.plan.read.text.clone(),
                parameters,
            },
        }
    }
}

/// The searches of an execution whose answer has `limit` rows; `None` for a query without an order.
fn searches(
    plan: &AnnPlan,
    limit: Option<u32>,
    values: EvaluationInputs<'_>,
) -> Result<Option<SearchesOfExecution>, CqlError> {
    let (Some(order), Some(limit)) = (&plan.order, limit) else {
        return Ok(None);
    };
    let found = order.searches.evaluate(limit as usize, values)?;
    for (call, looked_for) in &found.searches {
        if let (SearchTerm::Vector(term), SearchedFor::Vector(vector)) =
            (&order.searches.calls[*call], looked_for)
        {
            term.check_length(vector, order.calls[*call].candidates.metric)?;
        }
    }
    Ok(Some(found))
}

/// The ordering that words request from a full-text index.
fn word_ordering(index: &DefinedIndex, query: String) -> WordOrdering<'_> {
    WordOrdering {
        keyspace: &index.keyspace,
        index: &index.name,
        query,
        local_key: &index.target.local_key,
    }
}

/// Adds the trace and the warnings of a read to those of the answer.
pub(super) fn add_to(context: &mut ResponseContext, said: ResponseContext) {
    context.tracing_id = context.tracing_id.or(said.tracing_id);
    for warning in said.warnings {
        if !context.warnings.contains(&warning) {
            context.warnings.push(warning);
        }
    }
}

pub(super) fn unreadable(error: &cql::wire::DecodeError) -> CqlError {
    CqlError::server(format!(
        "the gateway cannot read what Cassandra answered: {error}"
    ))
}
