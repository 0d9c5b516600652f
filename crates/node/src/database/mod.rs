//! The data and services below all statements.

pub(crate) mod resolve;

use std::sync::Arc;

use storage::Storage;
use store_api::IndexServices;

use crate::security::access::AuthService;
use crate::statement::DefaultTimeouts;
use crate::system::SystemTables;

/// The data and services that statements use.
pub struct CqlDatabase {
    /// The user's keyspaces and tables.
    pub storage: Storage,
    /// The tables of `system`, `system_schema` and the other system keyspaces. Their rows are made
    /// from the catalog when they are read.
    pub system: SystemTables,
    /// The index services that `ANN OF` queries.
    pub stores: IndexServices,
    /// The logins of clients, and the rights of roles.
    pub access: Arc<AuthService>,
    /// The times that statements of clients may take.
    pub timeouts: DefaultTimeouts,
}
