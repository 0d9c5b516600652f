//! The state by which requests and responses of a connection are decided.

use std::sync::Arc;

use bytes::Bytes;
use cql::wire::{DecodeError, Frame, FrameHeader, Response, ResponseContext};
use http_server::MaintenanceMode;
use slow_statements::SlowQueries;
use store_api::IndexServices;

use super::session::ProxySession;
use crate::answer_cache::AnswerCache;
use crate::catalog::IndexCatalog;
use crate::prepared::StatementsById;
use crate::ring::Ring;
use crate::writes::ChangeLog;

/// The state that decisions in both directions of a connection are made by. Clones share it.
#[derive(Clone)]
pub(super) struct DecisionContext {
    /// The state that both directions of the connection share.
    pub(super) session: Arc<ProxySession>,
    /// The prepared statements of the gateway.
    pub(super) prepared: Arc<StatementsById>,
    /// The definitions of vector indexes.
    pub(super) catalog: Arc<IndexCatalog>,
    /// The state that all writes to change logs share.
    pub(super) log: Arc<ChangeLog>,
    /// Answers that many clients request.
    pub(super) answer_cache: Arc<AnswerCache>,
    /// The addresses of the gateways that are reported to drivers.
    pub(super) ring: Arc<Ring>,
    /// The index services, which CREATE INDEX waits for.
    pub(super) stores: IndexServices,
    /// Whether no new statements are taken.
    pub(super) maintenance: MaintenanceMode,
    /// The log of slow searches and writes.
    pub(super) slow_queries: Arc<SlowQueries>,
}

impl DecisionContext {
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
