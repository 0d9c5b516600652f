//! The data and services below all statements.

pub(crate) mod resolve;

use std::sync::Arc;

use storage::Storage;
use store_api::Stores;

use crate::security::access::Access;
use crate::statement::Timeouts;
use crate::system::SystemTables;

/// The data and services that statements use.
pub struct Database {
    /// The user's keyspaces and tables.
    pub storage: Storage,
    /// The tables of `system`, `system_schema` and the other system keyspaces. Their rows are made
    /// from the catalog when they are read.
    pub system: SystemTables,
    /// The index services that `ANN OF` queries.
    pub stores: Stores,
    /// The logins of clients, and the rights of roles.
    pub access: Arc<Access>,
    /// The times that statements of clients may take.
    pub timeouts: Timeouts,
}
