//! Requests that the gateway carries out itself. Each runs in a task of its own, so that none holds
//! up another on its connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{Frame, QueryParameters, Request, Response, ResponseContext};
use http_server::MaintenanceMode;
use slow_statements::SlowQueries;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;
use traces::RequestId;

use super::context::DecisionContext;
use super::errors::in_maintenance;
use crate::catalog::IndexCatalog;
use crate::dependencies::StatementDependencies;
use crate::dialect::FrameFormat;
use crate::error_frame::error_frame;
use crate::metrics::{RequestClass, RequestCounters};
use crate::node_requests::{ClientRequestError, NodeRequestSender, holding, on_stream};
use crate::overlay::log_read::{LogRead, PreparedLogRead};
use crate::prepared::StatementsById;
use crate::statement::ClassifiedStatement;
use crate::vector_search::{self, AnnPlan, AnnStatement, FreshSearches};

/// Requests of one connection that are carried out at once; more are refused.
const AT_ONCE_MAX: usize = 1024;

/// A request that the gateway carries out.
pub(super) struct DeferredRequest {
    /// The stream of the request, on which the client is answered.
    pub(super) stream: i16,
    /// Whether the client wants a trace.
    pub(super) traced: bool,
    /// The work to do.
    pub(super) job: DeferredJob,
}

impl DeferredRequest {
    /// The kind by which metrics count the request.
    pub(super) fn kind(&self) -> RequestClass {
        match self.job {
            DeferredJob::Prepare { .. }
            | DeferredJob::Query { .. }
            | DeferredJob::Execute { .. } => RequestClass::Ann,
            DeferredJob::Poll { .. } | DeferredJob::Repeat(_) => RequestClass::Poll,
        }
    }
}

/// The kinds of requests that the gateway carries out.
pub(super) enum DeferredJob {
    /// PREPARE of a query by searches, which depends on these facts and gets this id.
    Prepare {
        plan: Box<AnnPlan>,
        dependencies: StatementDependencies,
        id: Bytes,
        text_bytes: usize,
    },
    /// QUERY of a query by searches, which comes as text.
    Query {
        plan: Box<AnnPlan>,
        parameters: QueryParameters,
    },
    /// EXECUTE of a prepared query by searches.
    Execute {
        statement: Arc<AnnStatement>,
        id: Bytes,
        /// The id of the columns that the client expects, in version 5.
        expected: Option<Bytes>,
        parameters: QueryParameters,
    },
    /// A poll of a change log that probably has no rows from `from_micros` on. Microseconds since
    /// the epoch.
    Poll {
        poll: Arc<PreparedLogRead>,
        from_micros: i64,
        id: Bytes,
        /// The id of the columns that the client expects, in version 5.
        expected: Option<Bytes>,
        parameters: QueryParameters,
    },
    /// A request whose answer is known: this frame.
    Repeat(Frame),
}

/// The state that the tasks of a connection share.
#[derive(Clone)]
pub(super) struct BackgroundRequests {
    /// Sends requests to the node on the client's connection.
    pub(super) node: NodeRequestSender,
    /// Searches in the index services.
    pub(super) searches: FreshSearches,
    /// The prepared statements of the gateway.
    pub(super) prepared: Arc<StatementsById>,
    /// The definitions of vector indexes.
    pub(super) catalog: Arc<IndexCatalog>,
    /// The counters that metrics show.
    pub(super) metrics: Arc<RequestCounters>,
    /// The log of slow searches.
    slow_queries: Arc<SlowQueries>,
    /// The address of the client.
    client_address: SocketAddr,
    /// Counts the work in progress, and refuses more during maintenance.
    maintenance: MaintenanceMode,
    /// The way to the client.
    pub(super) answers: mpsc::Sender<Bytes>,
    /// Cancelled when the connection is closed: no one waits for answers any more.
    pub(super) closed: CancellationToken,
    /// The places for work at once.
    places: Arc<Semaphore>,
}

impl BackgroundRequests {
    /// Makes the state for the tasks of a connection whose requests are decided by `context`.
    pub(super) fn new(
        node: NodeRequestSender,
        searches: FreshSearches,
        context: &DecisionContext,
        answers: mpsc::Sender<Bytes>,
        gone: CancellationToken,
    ) -> BackgroundRequests {
        BackgroundRequests {
            node,
            searches,
            prepared: context.prepared.clone(),
            catalog: context.catalog.clone(),
            metrics: context.log.metrics.clone(),
            slow_queries: context.slow_queries.clone(),
            client_address: context.session.client_address,
            maintenance: context.maintenance.clone(),
            answers,
            closed: gone,
            places: Arc::new(Semaphore::new(AT_ONCE_MAX)),
        }
    }

    /// Whether there is a place for more work.
    pub(super) fn has_room(&self) -> bool {
        self.places.available_permits() > 0
    }

    /// Begins to work on a request. The task sends the answer to the client.
    ///
    /// # Errors
    /// If too many requests are worked on already, or during maintenance.
    pub(super) fn begin(
        &self,
        work: DeferredRequest,
        dialect: FrameFormat,
    ) -> Result<(), CqlError> {
        let counted = self.maintenance.begin().map_err(in_maintenance)?;
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            let message = format!(
                "{AT_ONCE_MAX} vector queries are on their way on this connection already: try again later, or use more connections"
            );
            return Err(CqlError::new(ErrorKind::Overloaded, message));
        };
        let shop = BackgroundRequests {
            node: self.node.for_request(dialect),
            ..self.clone()
        };
        tokio::spawn(async move {
            let gone = shop.closed.clone();
            tokio::select! {
                () = shop.carry_out(work) => {}
                () = gone.cancelled() => {}
            }
            drop((place, counted));
        });
        Ok(())
    }

    /// Works on a request, and sends the answer to the client.
    async fn carry_out(&self, work: DeferredRequest) {
        let DeferredRequest {
            stream,
            traced,
            job,
        } = work;
        let is_search = matches!(job, DeferredJob::Query { .. } | DeferredJob::Execute { .. });
        let began = Instant::now();
        let answer = match self.answer(job, traced).await {
            Ok((mut context, response)) => {
                context.stream = stream;
                context.version = self.node.version();
                let mut out = BytesMut::new();
                response.encode(&context, self.node.compression(), &mut out);
                out.freeze()
            }
            Err(ClientRequestError::Node(frame)) => on_stream(&frame, stream),
            Err(ClientRequestError::Cql(error)) => error_frame(self.node.version(), stream, error),
        };
        if is_search {
            self.metrics.search_took(began.elapsed());
        }
        let answer = holding(answer, self.node.take_reserved_memory());
        // If the other loop has ended, the client has disconnected.
        let _ = self.answers.send(answer).await;
    }

    /// The answer to a job.
    async fn answer(
        &self,
        job: DeferredJob,
        traced: bool,
    ) -> Result<(ResponseContext, Response), ClientRequestError> {
        match job {
            DeferredJob::Prepare {
                plan,
                dependencies,
                id,
                text_bytes,
            } => {
                let prepared =
                    vector_search::prepare(*plan, id.clone(), &self.node, traced).await?;
                let (statement, context, response) = prepared;
                // The node's description of the columns is about as long as the selection.
                let statement = ClassifiedStatement::Neighbours(Arc::new(statement));
                self.prepared
                    .insert(&id, dependencies, statement, 2 * text_bytes);
                Ok((context, response))
            }
            DeferredJob::Query { plan, parameters } => {
                let (node, searches) = (&self.node, &self.searches);
                let search = vector_search::query(&plan, parameters, node, searches, traced);
                self.timed(&plan, search).await
            }
            DeferredJob::Execute {
                statement,
                id,
                expected,
                parameters,
            } => {
                let search = vector_search::execute(
                    &statement,
                    id,
                    expected,
                    parameters,
                    &self.node,
                    &self.searches,
                    traced,
                );
                self.timed(statement.plan(), search).await
            }
            DeferredJob::Poll {
                poll,
                from_micros,
                id,
                expected,
                parameters,
            } => {
                // Rows that were there before the poll came are marked by then.
                let has_looked = self.catalog.activity.wait_for_refresh().await;
                let LogRead { keyspace, table } = &poll.of;
                if has_looked && self.catalog.is_idle(keyspace, table, from_micros) {
                    return Ok((ResponseContext::default(), poll.no_rows(&parameters)));
                }
                let request = Request::Execute {
                    id,
                    result_metadata_id: expected,
                    parameters,
                };
                self.node.ask(&request, traced).await
            }
            DeferredJob::Repeat(frame) => Err(ClientRequestError::Node(frame)),
        }
    }

    /// Carries out a search by this plan, with an id by which the logs of this gateway and of the
    /// index services name it. A slow one is logged.
    async fn timed<T>(&self, plan: &AnnPlan, search: impl Future<Output = T>) -> T {
        let timed = async {
            let began = self.slow_queries.begin();
            let answer = search.await;
            self.slow_queries
                .end(began, || plan.executed(self.client_address));
            answer
        };
        RequestId::unique().scope(timed).await
    }
}
