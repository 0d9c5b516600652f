//! The state by which requests and responses of a connection are decided.

use std::sync::Arc;

use bytes::Bytes;
use cql::wire::{DecodeError, Frame, FrameHeader, Response, ResponseContext};
use store_api::Stores;

use super::session::Session;
use crate::catalog::Catalog;
use crate::kept_answers::KeptAnswers;
use crate::prepared::PreparedStatements;
use crate::ring::Ring;
use crate::writes::ChangeLog;

/// The state that decisions in both directions of a connection are made by. Clones share it.
#[derive(Clone)]
pub(super) struct Context {
    /// The state that both directions of the connection share.
    pub(super) session: Arc<Session>,
    /// The prepared statements of the gateway.
    pub(super) prepared: Arc<PreparedStatements>,
    /// The definitions of vector indexes.
    pub(super) catalog: Arc<Catalog>,
    /// The state that all writes to change logs share.
    pub(super) log: Arc<ChangeLog>,
    /// Answers that many clients request.
    pub(super) kept_answers: Arc<KeptAnswers>,
    /// The addresses of the gateways that are reported to drivers.
    pub(super) ring: Arc<Ring>,
    /// The index services, which CREATE INDEX waits for.
    pub(super) stores: Stores,
}

impl Context {
    /// Decodes a response with the connection's compression.
    pub(super) fn decode(
        &self,
        header: &FrameHeader,
        body: &[u8],
    ) -> Result<(ResponseContext, Response), DecodeError> {
        let frame = Frame {
            header: *header,
            body: Bytes::copy_from_slice(body),
        };
        Response::decode(&frame, self.session.compression(), self.session.body_max())
    }
}
