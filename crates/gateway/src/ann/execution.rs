//! One execution of a nearest-neighbour query: its values, what it asks the index service and the
//! cluster for, and the form of its answer.

use bytes::Bytes;
use clock::{Clock, SystemClock};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BoundValue, Metadata, QueryParameters, Request, Response, ResponseContext, Values,
};
use query::SearchedIndex as _;
use query::bind::StatementClock;
use query::condition::is_key_column;
use query::relation::Relation;
use query::row_filter::{self, RowFilter};
use query::{bounds, condition, key_values, limit, refused};
use store_api::types::{AnnRequest, Filter, Restriction};
use store_api::{ClientError, KeyValue, Neighbours};
use value::timeuuid;

use super::conditions::{self, Place};
use super::freshness::QuerySearches;
use super::key_read::{Key, Layout};
use super::rows::{self, Row};
use super::{AnnPlan, AnnStatement};
use crate::catalog::DefinedIndex;

/// The age up to which an index counts as new, so that an index service may not know it yet. Index
/// services look at the schema every second, and one that was away may be late. Microseconds.
const NEW_FOR_MICROS: i64 = 30_000_000;

/// The warning beside an answer that may lack rows which have had no room in the index.
pub(super) const NO_ROOM_WARNING: &str = "The vector index has had no room for some rows of the table, so the answer may lack them: give the index \
     service more memory or disk, or drop an index.";

/// The rows that the index service has named.
pub(super) struct Named {
    /// The keys, nearest first.
    pub(super) keys: Vec<Key>,
    /// Whether the newest writes may be missing.
    pub(super) is_stale: bool,
    /// Whether rows may be missing that have had no room in the index.
    pub(super) is_short: bool,
}

/// One execution of a query.
pub(super) struct Search<'a> {
    pub(super) plan: &'a AnnPlan,
    /// The vector to search for, serialised.
    pub(super) vector: Bytes,
    /// The number of rows to return at most.
    pub(super) limit: usize,
    /// The conditions that a row must satisfy, all of them.
    pub(super) filters: Vec<RowFilter<Place>>,
    /// The values of the markers in the selection.
    pub(super) selection: Vec<BoundValue>,
    /// The parameters of the client's request, without the values.
    pub(super) parameters: QueryParameters,
    /// Whether the client wants a trace.
    pub(super) traced: bool,
    /// Whether the client knows the columns of the answer.
    pub(super) skips_metadata: bool,
    /// The id of the columns of the answer, if the client expects others.
    pub(super) new_columns: Option<Bytes>,
}

/// The form in which the cluster is asked for rows.
pub(super) enum ReadBy<'a> {
    /// QUERY with the text of the statement.
    Text,
    /// EXECUTE of the prepared statement.
    Id(&'a AnnStatement),
}

impl<'a> Search<'a> {
    pub(super) fn new<'n>(
        plan: &'a AnnPlan,
        mut parameters: QueryParameters,
        name: impl Fn(usize) -> Option<&'n str>,
        traced: bool,
    ) -> Result<Search<'a>, CqlError> {
        let values = std::mem::replace(&mut parameters.values, Values::Positional(Vec::new()));
        let mut values = values.in_order(plan.markers.len(), name)?;
        let clock = StatementClock::of_none();
        let evaluated = query::values::Values {
            bound: &values,
            clock: &clock,
        };
        let limit = bounds::checked_limit(limit::evaluate(Some(&plan.limit), evaluated)?)?;
        let vector = plan.vector.evaluate(evaluated)?;
        plan.vector.check_length(&vector, plan.candidates.metric)?;
        let relations = plan.conditions.all.iter().map(|one| &one.relation);
        let place = |column: &schema::Column| {
            let partition_columns = plan.table.partition_key_count;
            plan.conditions.place(column, partition_columns)
        };
        let filters = row_filter::bind_all(relations, place, evaluated)?;
        values.truncate(plan.selection_markers);
        Ok(Search {
            plan,
            vector,
            limit,
            filters,
            selection: values,
            parameters,
            skips_metadata: false,
            new_columns: None,
            traced,
        })
    }

    /// The answer with these rows, of which the client gets what it selected.
    pub(super) fn encoded(
        &self,
        rows: &[Row],
        columns: &Metadata,
        layout: &Layout,
        mut context: ResponseContext,
    ) -> (ResponseContext, Response) {
        let mut encoded = rows::encode(rows, columns, layout, self.skips_metadata);
        encoded.new_metadata_id.clone_from(&self.new_columns);
        let page_size = self.parameters.page_size.map(|rows| rows as usize);
        if bounds::is_cut_short(page_size, self.limit) {
            context.warnings.push(bounds::PAGING_WARNING.to_owned());
        }
        (context, Response::Rows(encoded))
    }

    /// Whether a row satisfies WHERE.
    pub(super) fn is_wanted(&self, row: &Row, layout: &Layout) -> bool {
        let partition_columns = self.plan.table.partition_key_count;
        conditions::passes(row, layout, partition_columns, &self.filters)
    }

    /// The conditions that the index service can search by. `keeps_unnamed` says whether it keeps
    /// columns that the index does not name.
    fn restrictions(&self, keeps_unnamed: bool) -> Vec<Restriction> {
        let key = self.plan.table.partition_key().iter();
        let key: Vec<String> = key.map(|column| column.name.clone()).collect();
        let conditions = &self.plan.conditions.all;
        condition::restrictions(conditions, &self.filters, |filter, relation| {
            let is_left_out = !keeps_unnamed && self.is_on_unnamed(relation);
            (!is_left_out).then(|| filter.restriction(relation, &key))?
        })
    }

    /// Whether a relation is on a column that the index does not name.
    fn is_on_unnamed(&self, relation: &Relation) -> bool {
        relation.first_column().is_some_and(|column| {
            !is_key_column(column.kind) && !self.plan.index.names(&column.name)
        })
    }

    /// The filter for the index service with all conditions, if it can search by each of them. The
    /// inner `None`: there is no condition.
    pub(super) fn whole_filter(&self) -> Option<Option<Filter>> {
        let restrictions = self.restrictions(true);
        let is_whole = restrictions.len() == self.filters.len();
        is_whole.then(|| condition::search_filter(restrictions))
    }

    /// A search for the `wanted` nearest rows, without a filter.
    pub(super) fn request_for(&self, wanted: usize) -> AnnRequest {
        AnnRequest {
            exact: self.plan.options.exact,
            ..AnnRequest::new(bounds::elements(&self.vector), wanted)
        }
    }

    /// Asks the index service. The flag tells whether the answer may lack the newest writes.
    pub(super) async fn ask(
        &self,
        searches: &mut QuerySearches<'_>,
        request: AnnRequest,
    ) -> Result<(Neighbours, bool), ClientError> {
        let DefinedIndex { keyspace, name, .. } = &*self.plan.index;
        let key_columns = self.plan.table.primary_key().iter();
        let names: Vec<&str> = key_columns.map(|column| column.name.as_str()).collect();
        let index = (keyspace.as_str(), name.as_str());
        searches.neighbours(index, request, &names).await
    }

    /// Asks the index service for the keys of the `wanted` nearest rows, nearest first.
    pub(super) async fn candidates(
        &self,
        searches: &mut QuerySearches<'_>,
        wanted: usize,
    ) -> Result<Named, CqlError> {
        let request = |keeps_unnamed| AnnRequest {
            filter: condition::search_filter(self.restrictions(keeps_unnamed)),
            ..self.request_for(wanted)
        };
        let mut asked = self.ask(searches, request(searches.keeps_unnamed)).await;
        let mut kept = self.plan.conditions.all.iter().filter(|one| one.is_kept);
        // The service may not have noticed the column's index yet, or be building the vector index
        // anew with it. The rows are checked in any case.
        if matches!(asked, Err(ClientError::Status { .. }))
            && searches.keeps_unnamed
            && kept.any(|one| self.is_on_unnamed(&one.relation))
        {
            searches.keeps_unnamed = false;
            asked = self.ask(searches, request(false)).await;
        }
        let (neighbours, is_stale) = asked.map_err(|error| self.search_failed(error))?;
        let key = |key: &Vec<KeyValue>| {
            self.key(key)
                .ok_or_else(|| refused(ClientError::InvalidJson))
        };
        let keys: Result<Vec<Key>, CqlError> = neighbours.keys.iter().map(key).collect();
        Ok(Named {
            keys: keys?,
            is_stale,
            is_short: neighbours.is_short,
        })
    }

    /// The error for a search that failed in the index service. A service that does not know a new
    /// index will know it soon, and one that lacks the newest writes will have them; upon these
    /// errors drivers ask another gateway, or again.
    pub(super) fn search_failed(&self, error: ClientError) -> CqlError {
        let DefinedIndex { name, version, .. } = &*self.plan.index;
        if let ClientError::Behind { .. } = error {
            return CqlError::new(
                ErrorKind::Overloaded,
                format!(
                    "the vector index {name} has not taken up the newest writes through this gateway in time: try again"
                ),
            );
        }
        let age = SystemClock.now_micros() - timeuuid::unix_micros(version);
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

    /// The serialised key that an index service sent as JSON; `None` if it does not fit the table.
    fn key(&self, sent: &[KeyValue]) -> Option<Key> {
        let columns = self.plan.table.primary_key();
        key_values(columns.iter().map(|column| column.cql_type.as_ref()), sent)
    }

    /// The request that reads a page of all rows, from where another page ended.
    pub(super) fn page(&self, rows: u32, paging_state: Option<Bytes>) -> Request {
        Request::Query {
            statement: self.plan.scan.text.clone(),
            parameters: QueryParameters {
                values: Values::Positional(self.selection.clone()),
                skip_metadata: false,
                page_size: Some(rows),
                paging_state,
                timestamp: None,
                ..self.parameters.clone()
            },
        }
    }

    /// The request that reads rows with these values.
    pub(super) fn request(&self, by: &ReadBy<'_>, values: Vec<BoundValue>) -> Request {
        let parameters = QueryParameters {
            values: Values::Positional(values),
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
