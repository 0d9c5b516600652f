//! The options of a node.

use std::sync::Arc;

use client_memory::MemoryShares;
use http_server::MaintenanceMode;
use slow_statements::SlowQueries;

use crate::guardrails::Guardrails;
use crate::security::audit::AuditLog;
use crate::server::CqlListenerOptions;
use crate::statement::DefaultTimeouts;
use crate::system::{DATA_CENTER, ProcessSetting};

/// The options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The listeners. The node reports to drivers the address to which they connected.
    pub listeners: Vec<CqlListenerOptions>,
    /// The bytes that prepared statements may take, about. Beyond it the least useful are
    /// forgotten, and drivers prepare them again.
    pub prepared_bytes_max: u64,
    /// The name of the data center of the node.
    pub data_center: String,
    /// Whether clients have to log in.
    pub login: bool,
    /// The settings that the system tables show. They hold no secrets.
    pub settings: Vec<ProcessSetting>,
    /// The thresholds at which clients are warned and requests refused.
    pub guardrails: Arc<Guardrails>,
    /// Whether no new statements are taken.
    pub maintenance: MaintenanceMode,
    /// The log of slow statements.
    pub slow_queries: Arc<SlowQueries>,
    /// The audit log. `None` for none.
    pub audit: Option<Arc<AuditLog>>,
    /// The times that statements may take.
    pub timeouts: DefaultTimeouts,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            listeners: vec![CqlListenerOptions::default()],
            prepared_bytes_max: MemoryShares::default().prepared as u64,
            data_center: DATA_CENTER.to_owned(),
            login: false,
            settings: Vec::new(),
            guardrails: Arc::default(),
            maintenance: MaintenanceMode::default(),
            slow_queries: Arc::default(),
            audit: None,
            timeouts: DefaultTimeouts::default(),
        }
    }
}
