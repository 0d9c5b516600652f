//! Tables that were truncated: their indexes are built anew.

use cql::error::CqlError;

use super::define::{TRIES_MAX, too_many_changes};
use super::definition::{Change, Definitions};
use super::{Catalog, timeuuids};

impl Catalog {
    /// Gives the indexes of a table another version each, by which index services take them for new ones: they forget what
    /// they hold and read the table again. TRUNCATE leaves no log row that would tell them.
    ///
    /// # Errors
    /// If the definitions cannot be changed.
    pub(crate) async fn renew(&self, keyspace: &str, table: &str) -> Result<(), CqlError> {
        let cluster = self.cluster().ok_or_else(|| {
            CqlError::server("The gateway has no session to the cluster yet: try again")
        })?;
        let mut old = None;
        for _ in 0..TRIES_MAX {
            let definitions = Definitions::read(&cluster).await?;
            let live = definitions.live_on(keyspace, table);
            let live: Vec<_> = live.map(|row| row.index.clone()).collect();
            let old = old.get_or_insert_with(|| {
                let versions = live.iter().map(|index| index.version);
                versions.collect::<Vec<_>>()
            });
            let Some(index) = live.into_iter().find(|index| old.contains(&index.version)) else {
                self.look_again();
                return Ok(());
            };
            let change = Change::Renew(index, timeuuids::now()?);
            definitions.change(&cluster, change).await?;
        }
        Err(too_many_changes())
    }
}
