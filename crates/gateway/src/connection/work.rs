//! Requests that the gateway carries out itself. Each runs in a task of its own, so that none holds
//! up another on its connection.

use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{Frame, QueryParameters, Request, Response, ResponseContext};
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::ann::{self, AnnPlan, AnnStatement, Searches};
use crate::catalog::Catalog;
use crate::dependencies::Dependencies;
use crate::dialect::Dialect;
use crate::error_frame::error_frame;
use crate::inquiry::{Failure, Inquirer, holding, on_stream};
use crate::metrics::{Kind, Metrics};
use crate::overlay::log_read::{LogRead, PreparedLogRead};
use crate::prepared::PreparedStatements;
use crate::statement::Statement;

/// Requests of one connection that are carried out at once; more are refused.
const AT_ONCE_MAX: usize = 1024;

/// A request that the gateway carries out.
pub(super) struct Work {
    /// The stream of the request, on which the client is answered.
    pub(super) stream: i16,
    /// Whether the client wants a trace.
    pub(super) traced: bool,
    /// The work to do.
    pub(super) job: Job,
}

impl Work {
    /// The kind by which metrics count the request.
    pub(super) fn kind(&self) -> Kind {
        match self.job {
            Job::Prepare { .. } | Job::Query { .. } | Job::Execute { .. } => Kind::Ann,
            Job::Poll { .. } | Job::Repeat(_) => Kind::Poll,
        }
    }
}

/// The kinds of requests that the gateway carries out.
pub(super) enum Job {
    /// PREPARE of a nearest-neighbour query, which depends on these facts and gets this id.
    Prepare {
        plan: Box<AnnPlan>,
        dependencies: Dependencies,
        id: Bytes,
        text_bytes: usize,
    },
    /// QUERY of a nearest-neighbour query, which comes as text.
    Query {
        plan: Box<AnnPlan>,
        parameters: QueryParameters,
    },
    /// EXECUTE of a prepared nearest-neighbour query.
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
pub(super) struct Workshop {
    /// Sends requests to the node on the client's connection.
    pub(super) node: Inquirer,
    /// Searches in the index services.
    pub(super) searches: Searches,
    /// The prepared statements of the gateway.
    pub(super) prepared: Arc<PreparedStatements>,
    /// The definitions of vector indexes.
    pub(super) catalog: Arc<Catalog>,
    /// The counters that metrics show.
    pub(super) metrics: Arc<Metrics>,
    /// The way to the client.
    pub(super) answers: mpsc::Sender<Bytes>,
    /// Cancelled when the connection is closed: no one waits for answers any more.
    pub(super) gone: CancellationToken,
    /// The places for work at once.
    places: Arc<Semaphore>,
}

impl Workshop {
    /// Makes the workshop of a connection.
    pub(super) fn new(
        node: Inquirer,
        searches: Searches,
        prepared: Arc<PreparedStatements>,
        catalog: Arc<Catalog>,
        metrics: Arc<Metrics>,
        answers: mpsc::Sender<Bytes>,
        gone: CancellationToken,
    ) -> Workshop {
        Workshop {
            node,
            searches,
            prepared,
            catalog,
            metrics,
            answers,
            gone,
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
    /// If too many requests are worked on already.
    pub(super) fn begin(&self, work: Work, dialect: Dialect) -> Result<(), CqlError> {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            let message = format!(
                "{AT_ONCE_MAX} vector queries are on their way on this connection already: try again later, or use more connections"
            );
            return Err(CqlError::new(ErrorKind::Overloaded, message));
        };
        let shop = Workshop {
            node: self.node.for_work(dialect),
            ..self.clone()
        };
        tokio::spawn(async move {
            let gone = shop.gone.clone();
            tokio::select! {
                () = shop.carry_out(work) => {}
                () = gone.cancelled() => {}
            }
            drop(place);
        });
        Ok(())
    }

    /// Works on a request, and sends the answer to the client.
    async fn carry_out(&self, work: Work) {
        let Work {
            stream,
            traced,
            job,
        } = work;
        let is_search = matches!(job, Job::Query { .. } | Job::Execute { .. });
        let began = Instant::now();
        let answer = match self.answer(job, traced).await {
            Ok((mut context, response)) => {
                context.stream = stream;
                context.version = self.node.version();
                let mut out = BytesMut::new();
                response.encode(&context, self.node.compression(), &mut out);
                out.freeze()
            }
            Err(Failure::Node(frame)) => on_stream(&frame, stream),
            Err(Failure::Cql(error)) => error_frame(self.node.version(), stream, error),
        };
        if is_search {
            self.metrics.search_took(began.elapsed());
        }
        let answer = holding(answer, self.node.take_held());
        // If the other loop has ended, the client has disconnected.
        let _ = self.answers.send(answer).await;
    }

    /// The answer to a job.
    async fn answer(&self, job: Job, traced: bool) -> Result<(ResponseContext, Response), Failure> {
        match job {
            Job::Prepare {
                plan,
                dependencies,
                id,
                text_bytes,
            } => {
                let prepared = ann::prepare(*plan, id.clone(), &self.node, traced).await?;
                let (statement, context, response) = prepared;
                // The node's description of the columns is about as long as the selection.
                let statement = Statement::Neighbours(Arc::new(statement));
                self.prepared
                    .insert(&id, dependencies, statement, 2 * text_bytes);
                Ok((context, response))
            }
            Job::Query { plan, parameters } => {
                ann::query(&plan, parameters, &self.node, &self.searches, traced).await
            }
            Job::Execute {
                statement,
                id,
                expected,
                parameters,
            } => {
                ann::execute(
                    &statement,
                    id,
                    expected,
                    parameters,
                    &self.node,
                    &self.searches,
                    traced,
                )
                .await
            }
            Job::Poll {
                poll,
                from_micros,
                id,
                expected,
                parameters,
            } => {
                // Rows that were there before the poll came are marked by then.
                let has_looked = self.catalog.activity.look().await;
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
            Job::Repeat(frame) => Err(Failure::Node(frame)),
        }
    }
}
