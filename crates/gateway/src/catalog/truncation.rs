//! TRUNCATE of tables with vector indexes, which are rebuilt.
//!
//! TRUNCATE leaves no log row by which index services could learn of it. So each index of the table
//! gets another version, and index services take it for a new index: they drop the vectors that
//! they hold, and read the table again.
//!
//! The new version comes after the node's answer, and the gateway may die before that. So it writes
//! a *note* of the TRUNCATE into the definitions of the table's indexes before it sends the
//! TRUNCATE to the node. The change that gives an index its new version removes the note too. All
//! gateways see the notes. If a note stays for longer than a TRUNCATE can take, its gateway cannot
//! finish, and any gateway does so instead. Each gateway counts that time from when it first saw
//! the note, so no clocks are compared.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::sync::Arc;
use std::time::Duration;

use cql::error::CqlError;
use tokio::time::Instant;
use uuid::Uuid;

use super::change::DefinitionChange;
use super::cluster::InternalSession;
use super::define::{TRIES_MAX, too_many_changes};
use super::defined_index::DefinedIndex;
use super::definition::{ClusterDefinitions, IndexLifecycle, StoredDefinition};
use super::{IndexCatalog, LoggedTable, timeuuids};

/// The time that nodes may take for a TRUNCATE, by Cassandra's `truncate_request_timeout`.
const TRUNCATE_TIMEOUT: Duration = Duration::from_secs(60);

/// The time after which any gateway may act on a note. The gateway that wrote it has the node's
/// answer by then, and has had some time for the rest.
const FINISHED_WITHIN: Duration = Duration::from_secs(TRUNCATE_TIMEOUT.as_secs() + 15);

impl IndexCatalog {
    /// Notes that a table is going to be truncated. Returns the id of the note.
    ///
    /// # Errors
    /// If the definitions cannot be changed. Then the table must not be truncated.
    pub(crate) async fn note_truncate(&self, table: &LoggedTable) -> Result<Uuid, CqlError> {
        self.note(table).await.map_err(|error| CqlError {
            message: format!(
                "{} (the gateway has to note which vector indexes of {}.{} are to be built anew; nothing was truncated)",
                error.message, table.keyspace, table.name
            ),
            ..error
        })
    }

    async fn note(&self, table: &LoggedTable) -> Result<Uuid, CqlError> {
        let note = timeuuids::now()?;
        self.change_each(table, |row| {
            let is_noted = row.truncates.contains(&note);
            Ok((!is_noted).then(|| DefinitionChange::Note(row.index.clone(), note)))
        })
        .await?;
        Ok(note)
    }

    /// Removes a note, as nothing was truncated. If that fails, the indexes are rebuilt for
    /// nothing.
    pub(crate) async fn forget_truncate(&self, table: &LoggedTable, note: Uuid) {
        let forgotten = self.change_each(table, |row| {
            let is_noted = row.truncates.contains(&note);
            Ok(is_noted.then(|| DefinitionChange::Forget(row.index.clone(), note)))
        });
        if let Err(error) = forgotten.await {
            tracing::debug!(%error, "the note of a TRUNCATE that did nothing stays for a while");
        }
    }

    /// Gives each index of a truncated table another version, and removes the note.
    ///
    /// # Errors
    /// If the definitions cannot be changed. Then a gateway acts on the note later.
    pub(crate) async fn finish_truncate(
        &self,
        table: &LoggedTable,
        note: Uuid,
    ) -> Result<(), CqlError> {
        // The first version that was seen of each index, by its name. If it has changed since,
        // another gateway may already have acted on the note.
        let mut old = HashMap::new();
        self.change_each(table, |row| {
            let index = &row.index;
            let old = *old.entry(index.name.clone()).or_insert(index.version);
            Ok(if index.version == old {
                Some(DefinitionChange::Renew(
                    index.clone(),
                    timeuuids::now()?,
                    vec![note],
                ))
            } else if row.truncates.contains(&note) {
                Some(DefinitionChange::Forget(index.clone(), note))
            } else {
                None
            })
        })
        .await
    }

    /// Makes the changes that `change` returns for the definitions on a table, until it returns
    /// none.
    async fn change_each(
        &self,
        table: &LoggedTable,
        mut change: impl FnMut(&StoredDefinition) -> Result<Option<DefinitionChange>, CqlError>,
    ) -> Result<(), CqlError> {
        let cluster: Arc<InternalSession> = self.cluster().ok_or_else(|| {
            CqlError::server("The gateway has no session to the cluster yet: try again")
        })?;
        let mut lost = 0;
        while lost < TRIES_MAX {
            let definitions = ClusterDefinitions::read(&cluster).await?;
            let mut live = definitions.live_on(&table.keyspace, &table.name);
            let Some(change) = live.find_map(|row| change(row).transpose()) else {
                self.request_refresh();
                return Ok(());
            };
            let change = change?;
            let is_made = definitions.change(&cluster, change).await?;
            // Only changes that others came before count, as a table may have more indexes than
            // there are tries.
            lost += usize::from(!is_made);
        }
        Err(too_many_changes())
    }
}

/// The notes that this gateway has seen, with the times at which it first saw them.
#[derive(Debug, Default)]
pub(super) struct TruncateNotes {
    since: HashMap<Uuid, Instant>,
}

impl TruncateNotes {
    /// The change for an index whose note has stayed for too long; `None` if there is no such
    /// index. `version` becomes the version of the index.
    pub(super) fn overdue(
        &mut self,
        definitions: &ClusterDefinitions,
        now: Instant,
        version: Uuid,
    ) -> Option<DefinitionChange> {
        let live = || {
            let is_live = |row: &&StoredDefinition| row.state != IndexLifecycle::Dropping;
            definitions.rows.iter().filter(is_live)
        };
        self.since
            .retain(|note, _| live().any(|row| row.truncates.contains(note)));
        let mut overdue: Option<(&Arc<DefinedIndex>, Vec<Uuid>)> = None;
        for row in live() {
            for note in &row.truncates {
                let since = match self.since.entry(*note) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(new) => *new.insert(now),
                };
                if now.duration_since(since) < FINISHED_WITHIN {
                    continue;
                }
                match &mut overdue {
                    None => overdue = Some((&row.index, vec![*note])),
                    Some((index, notes)) if Arc::ptr_eq(index, &row.index) => notes.push(*note),
                    // The next round acts on other indexes.
                    Some(_) => {}
                }
            }
        }
        let (index, notes) = overdue?;
        tracing::warn!(
            keyspace = index.keyspace,
            index = index.name,
            "the gateway that passed a TRUNCATE on did not finish it: the index is built anew"
        );
        Some(DefinitionChange::Renew(index.clone(), version, notes))
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixtures::definition;
    use super::*;

    const NOTE: Uuid = Uuid::from_u128(5);
    const VERSION: Uuid = Uuid::from_u128(9);

    fn definitions(state: IndexLifecycle, truncates: &[Uuid]) -> ClusterDefinitions {
        let noted = StoredDefinition {
            truncates: truncates.to_vec(),
            ..definition(state)
        };
        ClusterDefinitions {
            revision: 7,
            rows: vec![noted],
        }
    }

    #[test]
    fn a_note_that_stays_is_acted_by() {
        let mut notes = TruncateNotes::default();
        let noted = definitions(IndexLifecycle::Usable, &[NOTE]);
        let seen = Instant::now();
        for early in [Duration::ZERO, TRUNCATE_TIMEOUT] {
            let change = notes.overdue(&noted, seen + early, VERSION);
            assert!(change.is_none(), "{change:?}");
        }
        let change = notes.overdue(&noted, seen + FINISHED_WITHIN, VERSION);
        let Some(DefinitionChange::Renew(index, version, acted_by)) = change else {
            panic!("{change:?}");
        };
        assert_eq!((index.name.as_str(), version), ("i", VERSION));
        assert_eq!(acted_by, [NOTE]);
    }

    #[test]
    fn each_note_has_its_own_time() {
        let mut notes = TruncateNotes::default();
        let seen = Instant::now();
        let late = Uuid::from_u128(6);
        notes.overdue(&definitions(IndexLifecycle::Usable, &[NOTE]), seen, VERSION);
        let both = definitions(IndexLifecycle::Usable, &[NOTE, late]);
        notes.overdue(&both, seen + TRUNCATE_TIMEOUT, VERSION);
        let change = notes.overdue(&both, seen + FINISHED_WITHIN, VERSION);
        assert!(
            matches!(&change, Some(DefinitionChange::Renew(.., acted_by)) if acted_by[..] == [NOTE]),
            "{change:?}"
        );
        // The note goes meanwhile, as its gateway has finished. If it comes again, its time begins
        // again.
        notes.overdue(&definitions(IndexLifecycle::Usable, &[]), seen, VERSION);
        let again = notes.overdue(&both, seen + FINISHED_WITHIN, VERSION);
        assert!(again.is_none(), "{again:?}");
    }

    #[test]
    fn an_index_on_its_way_out_needs_nothing() {
        let mut notes = TruncateNotes::default();
        let noted = definitions(IndexLifecycle::Dropping, &[NOTE]);
        let seen = Instant::now();
        for now in [seen, seen + FINISHED_WITHIN] {
            let change = notes.overdue(&noted, now, VERSION);
            assert!(change.is_none(), "{change:?}");
        }
    }
}
