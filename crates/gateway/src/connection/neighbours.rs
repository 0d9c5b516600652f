//! Nearest-neighbour queries: recognises them among the client's requests, and makes them jobs of
//! the workshop.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::{DecodeError, Flags, Frame, FrameHeader, Request};

use super::decide::Decision;
use super::requests::Requests;
use super::work::{Job, Work};
use crate::ann::{AnnPlan, AnnStatement, statement_id};
use crate::catalog::Snapshot;
use crate::dependencies::Dependencies;
use crate::prepared::check_text;
use crate::recognise::{self, Verb};

impl Requests {
    /// Decides about a SELECT that may be a nearest-neighbour query; `None` if it is none, or uses
    /// no index of the gateway's.
    pub(super) fn neighbours(
        &self,
        header: &FrameHeader,
        plain: &[u8],
        text: &[u8],
        snapshot: &Snapshot,
    ) -> Result<Option<Decision>, CqlError> {
        if snapshot.is_empty() || !recognise::may_order_by_ann(text) {
            return Ok(None);
        }
        let Ok(text) = std::str::from_utf8(text) else {
            return Ok(None);
        };
        let keyspace = self.session.keyspace();
        let Some(plan) = AnnPlan::of(text, keyspace.as_deref(), snapshot)? else {
            return Ok(None);
        };
        tracing::debug!(%plan, "a nearest-neighbour query is planned");
        let plan = Box::new(plan);
        let job = match decode(header, plain)? {
            Request::Prepare { .. } => {
                check_text(text.len())?;
                Job::Prepare {
                    plan,
                    dependencies: Dependencies::of(
                        Verb::Select,
                        text.as_bytes(),
                        keyspace.as_deref(),
                        snapshot,
                    ),
                    id: statement_id(keyspace.as_deref(), text),
                    text_bytes: text.len(),
                }
            }
            Request::Query { parameters, .. } => Job::Query { plan, parameters },
            _ => return Ok(None),
        };
        Ok(Some(begin(header, job)))
    }

    /// Decides about the EXECUTE of a prepared nearest-neighbour query.
    pub(super) fn search(
        &self,
        header: &FrameHeader,
        plain: &[u8],
        statement: Arc<AnnStatement>,
    ) -> Result<Decision, CqlError> {
        let Request::Execute { id, parameters } = decode(header, plain)? else {
            return Ok(Decision::Pass);
        };
        let job = Job::Execute {
            statement,
            id,
            parameters,
        };
        Ok(begin(header, job))
    }
}

/// The decision to work on a job in the workshop.
fn begin(header: &FrameHeader, job: Job) -> Decision {
    Decision::Begin(Work {
        stream: header.stream,
        traced: header.flags.contains(Flags::TRACING),
        job,
    })
}

/// Decodes a request whose body is decompressed already.
pub(super) fn decode(header: &FrameHeader, plain: &[u8]) -> Result<Request, DecodeError> {
    let mut header = *header;
    header.flags = Flags(header.flags.0 & !Flags::COMPRESSION.0);
    let frame = Frame {
        header,
        body: Bytes::copy_from_slice(plain),
    };
    Request::decode(&frame, None, usize::MAX)
}
