//! One execution of a nearest-neighbour query: its values, the search that it is, what it reads
//! from the cluster, and the form of its answer.

use bytes::Bytes;
use clock::{Clock, SystemClock};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{
    BoundValue, ColumnsMetadata, MarkerValues, QueryParameters, Request, Response, ResponseContext,
};
use query::IndexDefinition as _;
use query::bind::StatementClock;
use query::condition::is_key_column;
use query::relation::PreparedRelation;
use query::row_filter::{self, BoundRelation};
use query::search::{RanksRows, RowSearch, SearchCursor, SearchPredicate, VectorOrdering};
use query::{bounds, condition, limit, reads_one_replica, refused};
use store_api::ClientError;
use value::timeuuid;

use super::conditions::{self, ConditionColumn};
use super::freshness::FreshSearches;
use super::row::{self, Row};
use super::{AnnPlan, AnnStatement};
use crate::catalog::DefinedIndex;
use crate::key_read::ReadRowLayout;

/// The age up to which an index counts as new, so that an index service may not know it yet. Index
/// services look at the schema every second, and one that was away may be late. Microseconds.
const NEW_FOR_MICROS: i64 = 30_000_000;

/// One execution of a query.
pub(super) struct AnnExecution<'a> {
    pub(super) plan: &'a AnnPlan,
    /// The vector to search for, serialised.
    pub(super) vector: Bytes,
    /// The number of rows to return at most.
    pub(super) limit: usize,
    /// The conditions that a row must satisfy, all of them.
    pub(super) filters: Vec<BoundRelation<ConditionColumn>>,
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

/// The form in which rows are requested from the cluster.
#[derive(Clone, Copy)]
pub(super) enum ReadBy<'a> {
    /// QUERY with the text of the statement.
    Text,
    /// EXECUTE of the prepared statement.
    Id(&'a AnnStatement),
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
        let mut values = values.in_order(plan.markers.len(), name)?;
        let clock = StatementClock::of_none();
        let evaluated = query::values::EvaluationInputs {
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
        Ok(AnnExecution {
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

    /// The search for the rows of the answer.
    pub(super) fn search(&self, searches: &FreshSearches) -> RowSearch<'_> {
        let AnnPlan {
            index,
            table,
            conditions,
            candidates,
            options,
            covered,
            ..
        } = self.plan;
        let key = table.partition_key().iter();
        let key: Vec<String> = key.map(|column| column.name.clone()).collect();
        let predicates = condition::predicates(&conditions.all, &self.filters, |filter, of| {
            Some(SearchPredicate {
                predicate: filter.predicate(of, &key)?,
                is_named: self.is_named(of),
            })
        });
        let covered = covered.as_ref().filter(|_| {
            // A trace would show nothing, and the index knows no other present than its own.
            let has_own_present = self.parameters.now_in_seconds.is_some();
            let may_read = searches.reader().is_some() && !self.traced && !has_own_present;
            may_read && reads_one_replica(self.parameters.consistency)
        });
        RowSearch {
            orderings: vec![VectorOrdering {
                keyspace: &index.keyspace,
                index: &index.name,
                vector: self.vector.clone(),
                candidates,
                exact: options.exact,
            }],
            predicates,
            conditions: self.filters.len(),
            limit: self.limit,
            cursor: SearchCursor::default(),
            freshness: searches.freshness(table.id),
            returned: covered.map(|covered| covered.names()),
            ranks_rows: RanksRows::ForConditions,
        }
    }

    /// Whether the index names the column of a relation, or it is of the primary key.
    fn is_named(&self, relation: &PreparedRelation) -> bool {
        relation
            .first_column()
            .is_none_or(|column| is_key_column(column.kind) || self.plan.index.names(&column.name))
    }

    /// The answer with these rows, of which the client gets what it selected.
    pub(super) fn encoded(
        &self,
        rows: &[Row],
        columns: &ColumnsMetadata,
        layout: &ReadRowLayout,
        mut context: ResponseContext,
    ) -> (ResponseContext, Response) {
        let mut encoded = row::encode(rows, columns, layout, self.skips_metadata);
        encoded.new_metadata_id.clone_from(&self.new_columns);
        let page_size = self.parameters.page_size.map(|rows| rows as usize);
        if bounds::is_cut_short(page_size, self.limit) {
            context.warnings.push(bounds::PAGING_WARNING.to_owned());
        }
        (context, Response::Rows(encoded))
    }

    /// Whether a row satisfies WHERE, and has a vector if it was read with it.
    pub(super) fn is_wanted(&self, row: &Row, layout: &ReadRowLayout) -> bool {
        let partition_columns = self.plan.table.partition_key_count;
        let mut vector = layout.vector.iter();
        vector.all(|vector| row.get(*vector).is_some_and(Option::is_some))
            && conditions::passes(row, layout, partition_columns, &self.filters)
    }

    /// The error for a search that failed in the index service. A service that does not know a new
    /// index will know it soon, and one that lacks the newest writes will have them; upon these
    /// errors drivers try another gateway, or try again.
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
