//! Requests that are worked on here: each in a task of its own, so that none holds up another on its connection.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use cql::error::{CqlError, ErrorKind};
use cql::wire::{Compression, Frame, QueryParameters, Request, Response, ResponseContext};
use store_api::Stores;
use tokio::sync::{Semaphore, mpsc};
use tokio_util::sync::CancellationToken;

use crate::ann::{self, AnnPlan, AnnStatement};
use crate::catalog::Catalog;
use crate::grounds::Grounds;
use crate::inquiry::{Failure, Inquirer, holding, on_stream};
use crate::overlay::log_read::{LogRead, PreparedLogRead};
use crate::prepared::{Meaning, PreparedStatements};

/// Requests of one connection that are worked on at once; more are refused.
const AT_ONCE_MAX: usize = 1024;

/// A request to work on.
pub(super) struct Work {
    pub(super) stream: i16,
    /// The client wants a trace.
    pub(super) traced: bool,
    pub(super) job: Job,
}

/// What is asked for.
pub(super) enum Job {
    /// PREPARE of a nearest-neighbour query, planned on these grounds, under an id.
    Prepare {
        plan: Box<AnnPlan>,
        grounds: Grounds,
        id: Bytes,
        text_bytes: usize,
    },
    /// A nearest-neighbour query as text.
    Query {
        plan: Box<AnnPlan>,
        parameters: QueryParameters,
    },
    /// A prepared one.
    Execute {
        statement: Arc<AnnStatement>,
        id: Bytes,
        parameters: QueryParameters,
    },
    /// A poll of a log that may have no rows from that time on, microseconds since the epoch.
    Poll {
        poll: Arc<PreparedLogRead>,
        from_micros: i64,
        id: Bytes,
        parameters: QueryParameters,
    },
    /// What has this answer.
    Repeat(Frame),
}

/// What the tasks of a connection share.
#[derive(Clone)]
pub(super) struct Workshop {
    pub(super) node: Inquirer,
    pub(super) stores: Stores,
    pub(super) prepared: Arc<PreparedStatements>,
    pub(super) catalog: Arc<Catalog>,
    pub(super) answers: mpsc::Sender<Bytes>,
    /// The connection is closed: nobody waits for answers.
    pub(super) gone: CancellationToken,
    places: Arc<Semaphore>,
}

impl Workshop {
    pub(super) fn new(
        node: Inquirer,
        stores: Stores,
        prepared: Arc<PreparedStatements>,
        catalog: Arc<Catalog>,
        answers: mpsc::Sender<Bytes>,
        gone: CancellationToken,
    ) -> Workshop {
        Workshop {
            node,
            stores,
            prepared,
            catalog,
            answers,
            gone,
            places: Arc::new(Semaphore::new(AT_ONCE_MAX)),
        }
    }

    /// Whether there is room for more work.
    pub(super) fn has_room(&self) -> bool {
        self.places.available_permits() > 0
    }

    /// Begins to work. The answer goes its way by itself.
    ///
    /// # Errors
    /// If too much is worked on already.
    pub(super) fn begin(
        &self,
        work: Work,
        compression: Option<Compression>,
    ) -> Result<(), CqlError> {
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            let message = format!(
                "{AT_ONCE_MAX} vector queries are on their way on this connection already: try again later, or use more connections"
            );
            return Err(CqlError::new(ErrorKind::Overloaded, message));
        };
        let shop = Workshop {
            node: self.node.for_work(compression),
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

    async fn carry_out(&self, work: Work) {
        let Work {
            stream,
            traced,
            job,
        } = work;
        let answer = match self.answer(job, traced).await {
            Ok((mut context, response)) => {
                context.stream = stream;
                let mut out = BytesMut::new();
                response.encode(&context, self.node.compression(), &mut out);
                out.freeze()
            }
            Err(Failure::Node(frame)) => on_stream(&frame, stream),
            Err(Failure::Cql(error)) => super::decide::encode_error(stream, error),
        };
        let answer = holding(answer, self.node.take_held());
        // If the other loop has ended, the client is gone.
        let _ = self.answers.send(answer).await;
    }

    async fn answer(&self, job: Job, traced: bool) -> Result<(ResponseContext, Response), Failure> {
        match job {
            Job::Prepare {
                plan,
                grounds,
                id,
                text_bytes,
            } => {
                let prepared = ann::prepare(*plan, id.clone(), &self.node, traced).await?;
                let (statement, context, response) = prepared;
                // What the node tells of the columns is about as long as the selection.
                let meaning = Meaning::Ann(Arc::new(statement));
                self.prepared.insert(&id, grounds, meaning, 2 * text_bytes);
                Ok((context, response))
            }
            Job::Query { plan, parameters } => {
                ann::query(&plan, parameters, &self.node, &self.stores, traced).await
            }
            Job::Execute {
                statement,
                id,
                parameters,
            } => ann::execute(&statement, id, parameters, &self.node, &self.stores, traced).await,
            Job::Poll {
                poll,
                from_micros,
                id,
                parameters,
            } => {
                // What was there before the poll came is marked by then.
                let has_looked = self.catalog.activity.look().await;
                let LogRead { keyspace, table } = &poll.of;
                if has_looked && self.catalog.is_idle(keyspace, table, from_micros) {
                    return Ok((ResponseContext::default(), poll.no_rows(&parameters)));
                }
                let request = Request::Execute { id, parameters };
                self.node.ask(&request, traced).await
            }
            Job::Repeat(frame) => Err(Failure::Node(frame)),
        }
    }
}
