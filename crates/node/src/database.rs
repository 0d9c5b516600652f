//! The data and services below all statements.

use storage::Storage;
use store_api::Stores;

use crate::access::Access;
use crate::system::SystemTables;
use crate::timeouts::Timeouts;

/// The data and services that statements use.
pub struct Database {
    /// The user's keyspaces and tables.
    pub storage: Storage,
    /// The tables of `system`, `system_schema` and the other system keyspaces. Their rows are made
    /// from the catalog when they are read.
    pub system: SystemTables,
    /// The index services that `ANN OF` asks.
    pub stores: Stores,
    /// The logins of clients, and the rights of roles.
    pub access: Access,
    /// The times that statements of clients may take.
    pub timeouts: Timeouts,
}
