//! The options of a node.

use std::sync::Arc;

use client_memory::Shares;

use crate::guardrails::Guardrails;
use crate::security::audit::AuditLog;
use crate::server::ListenerOptions;
use crate::statement::Timeouts;
use crate::system::{DATA_CENTER, Setting};

/// The options of a node.
#[derive(Clone, Debug)]
pub struct NodeOptions {
    /// The listeners. The node reports to drivers the address to which they connected.
    pub listeners: Vec<ListenerOptions>,
    /// The bytes that prepared statements may take, about. Beyond it the least useful are
    /// forgotten, and drivers prepare them again.
    pub prepared_bytes_max: u64,
    /// The name of the data center of the node.
    pub data_center: String,
    /// Whether clients have to log in.
    pub login: bool,
    /// The settings that the system tables show. They hold no secrets.
    pub settings: Vec<Setting>,
    /// The thresholds at which clients are warned and requests refused.
    pub guardrails: Arc<Guardrails>,
    /// The audit log. `None` for none.
    pub audit: Option<Arc<AuditLog>>,
    /// The times that statements may take.
    pub timeouts: Timeouts,
}

impl Default for NodeOptions {
    fn default() -> Self {
        NodeOptions {
            listeners: vec![ListenerOptions::default()],
            prepared_bytes_max: Shares::default().prepared as u64,
            data_center: DATA_CENTER.to_owned(),
            login: false,
            settings: Vec::new(),
            guardrails: Arc::default(),
            audit: None,
            timeouts: Timeouts::default(),
        }
    }
}
