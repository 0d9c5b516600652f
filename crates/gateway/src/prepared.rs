//! The prepared statements that went through this gateway, by their ids.
//!
//! Ids are the node's, or ours where a statement is worked on here: digests of the keyspace and the text, so that one id means
//! the same to every client. The table is shared by all connections and bounded in bytes, by an estimate.
//!
//! What a statement means was decided by one snapshot of the catalog, and holds as long as its [grounds](crate::grounds): then it is as
//! good as forgotten, and the statement is prepared again.

use std::sync::Arc;

use bytes::Bytes;
use cql::error::CqlError;
use cql::wire::Metadata;
use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};

use crate::ann::AnnStatement;
use crate::catalog::{LoggedTable, Snapshot};
use crate::grounds::Grounds;
use crate::overlay::PreparedConcern;
use crate::overlay::log_read::PreparedLogRead;
use crate::writes::PreparedWrite;

/// What a prepared statement means to the gateway.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    /// Nothing: it passes.
    Plain,
    /// It is a USE.
    Use,
    /// It truncates a logged table.
    Truncate(Arc<LoggedTable>),
    /// It writes to logged tables.
    Write(Arc<PreparedWrite>),
    /// It reads one of the tables that tell of the cluster's nodes. Its result's columns are kept for results that
    /// come without them.
    RingRows(Arc<Metadata>),
    /// It asks for nearest neighbours.
    Ann(Arc<AnnStatement>),
    /// It polls a change log.
    LogRead(Arc<PreparedLogRead>),
    /// Its answer may be some seconds old.
    Kept,
    /// It concerns vector indexes.
    Concern(Arc<PreparedConcern>),
}

/// Bytes that an entry takes beside its id and what it means.
const ENTRY_BYTES: usize = 256;

/// What is understood of a text, and the columns that the node tells of it, take at most about so many times their bytes: a bind
/// marker of three characters becomes a term and a name.
const UNDERSTOOD: usize = 32;

/// Texts up to so many bytes are understood and kept.
const TEXT_MAX: usize = 128 << 10;

/// Each part of the table has its share of the bytes, which the largest entry must fit in.
const PARTS: usize = 16;

/// The text of a statement to prepare that is not what passes unseen.
///
/// # Errors
/// If it is too long to be kept.
pub(crate) fn check_text(bytes: usize) -> Result<(), CqlError> {
    if bytes <= TEXT_MAX {
        return Ok(());
    }
    Err(CqlError::invalid(format!(
        "The gateway prepares no statement about a table with a vector index whose text is longer than {} KiB: \
         use bind markers for its values, or do not prepare it",
        TEXT_MAX >> 10
    )))
}

#[derive(Clone)]
struct Entry {
    grounds: Grounds,
    meaning: Meaning,
    /// What grounds and meaning take, about.
    bytes: usize,
}

#[derive(Clone)]
struct ByBytes;

impl Weighter<Bytes, Entry> for ByBytes {
    fn weight(&self, id: &Bytes, entry: &Entry) -> u64 {
        (ENTRY_BYTES + id.len() + entry.bytes) as u64
    }
}

/// What is known of ids.
pub(crate) struct PreparedStatements {
    by_id: Cache<Bytes, Entry, ByBytes>,
    /// The most that a meaning counts for: a heavier entry would not be kept at all.
    meaning_max: usize,
}

impl PreparedStatements {
    /// Room for statements that take so many bytes, about.
    ///
    /// # Panics
    /// Never: the options are whole.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let options = OptionsBuilder::new()
            .shards(PARTS)
            .estimated_items_capacity((bytes_max / ENTRY_BYTES).max(1))
            .weight_capacity(bytes_max as u64)
            .build()
            .expect("both capacities are given");
        PreparedStatements {
            by_id: Cache::with_options(options, ByBytes, Default::default(), Default::default()),
            meaning_max: bytes_max / PARTS / 2,
        }
    }

    /// What a statement means under a snapshot.
    pub(crate) fn get(&self, id: &[u8], snapshot: &Snapshot) -> Option<Meaning> {
        let entry = self.by_id.get(id)?;
        if entry.grounds.hold_at_once(snapshot) {
            return Some(entry.meaning);
        }
        let grounds = entry.grounds.found_in(snapshot)?;
        let meaning = entry.meaning.clone();
        self.put(id, Entry { grounds, ..entry });
        Some(meaning)
    }

    /// Remembers what a statement was understood to mean on these grounds. It was made of so many bytes: the text, and what the
    /// node told of it.
    pub(crate) fn insert(&self, id: &[u8], grounds: Grounds, meaning: Meaning, made_of: usize) {
        let bytes = match &meaning {
            Meaning::Plain | Meaning::Use | Meaning::Kept => 0,
            // The table is that of the snapshot.
            Meaning::Truncate(_) => 0,
            Meaning::Write(_)
            | Meaning::RingRows(_)
            | Meaning::LogRead(_)
            | Meaning::Ann(_)
            | Meaning::Concern(_) => made_of.saturating_mul(UNDERSTOOD).min(self.meaning_max),
        };
        let entry = Entry {
            bytes: bytes + grounds.bytes().min(self.meaning_max),
            grounds,
            meaning,
        };
        self.put(id, entry);
    }

    /// Replaces an entry, unless that was understood by a newer snapshot: an answer to PREPARE may come late, and whoever prepared
    /// meanwhile is about to execute.
    fn put(&self, id: &[u8], entry: Entry) {
        let known = self.by_id.peek(id);
        if known.is_none_or(|known| known.grounds.epoch() <= entry.grounds.epoch()) {
            self.by_id.insert(Bytes::copy_from_slice(id), entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::recognise::Verb;
    use crate::writes::test_tables::{events, products};

    const MIB: usize = 1 << 20;

    /// Of a statement whose meaning rests on its text.
    fn of_text() -> Grounds {
        let snapshot = Snapshot::default();
        Grounds::of(Verb::Select, b"SELECT 1", None, &snapshot)
    }

    fn remembered(statements: &PreparedStatements, count: u32) -> usize {
        let snapshot = Snapshot::default();
        (0..count)
            .filter(|number| statements.get(&number.to_be_bytes(), &snapshot).is_some())
            .count()
    }

    #[test]
    fn ids_beyond_the_capacity_are_forgotten() {
        let statements = PreparedStatements::new(MIB);
        for number in 0u32..10_000 {
            statements.insert(&number.to_be_bytes(), of_text(), Meaning::Plain, 1_000);
        }
        let known = remembered(&statements, 10_000);
        assert!((2_000..=MIB / ENTRY_BYTES).contains(&known), "{known}");
        let last = statements.get(&9_999u32.to_be_bytes(), &Snapshot::default());
        assert!(matches!(last, Some(Meaning::Plain)));
    }

    #[test]
    fn what_means_much_leaves_room_for_few() {
        let statements = PreparedStatements::new(64 * MIB);
        let columns = Arc::new(Metadata::default());
        for number in 0u32..1_000 {
            let meaning = Meaning::RingRows(columns.clone());
            statements.insert(&number.to_be_bytes(), of_text(), meaning, 32 << 10);
        }
        let known = remembered(&statements, 1_000);
        assert!((16..=64).contains(&known), "{known}");
        // One that is larger than any other is kept as well.
        let meaning = Meaning::RingRows(columns);
        statements.insert(b"large", of_text(), meaning, 100 * MIB);
        assert!(statements.get(b"large", &Snapshot::default()).is_some());
    }

    #[test]
    fn a_text_that_is_too_long_is_refused() {
        assert_eq!(check_text(TEXT_MAX), Ok(()));
        assert!(check_text(TEXT_MAX + 1).is_err());
    }

    #[test]
    fn an_id_is_forgotten_with_the_grounds_of_its_meaning() {
        let statements = PreparedStatements::new(MIB);
        let catalog = Catalog::new(Snapshot::default());
        let is_known = |id: &[u8]| statements.get(id, &catalog.snapshot()).is_some();
        let remember = |id: &[u8], text: &[u8]| {
            let grounds = Grounds::of(Verb::Write, text, Some("shop"), &catalog.snapshot());
            statements.insert(id, grounds, Meaning::Plain, text.len());
        };
        remember(b"write", b"INSERT INTO products (id) VALUES (?)");
        remember(b"batch", b"BEGIN BATCH");
        assert!(is_known(b"write") && is_known(b"batch"));
        let events = Arc::new(events());
        catalog.replace(Snapshot::new([events.clone()], []));
        assert!(is_known(b"write") && !is_known(b"batch"));
        // From here on it is known without a look.
        let entry = statements.by_id.peek(&b"write"[..]).unwrap();
        assert!(entry.grounds.hold_at_once(&catalog.snapshot()));
        catalog.replace(Snapshot::new([events, Arc::new(products())], []));
        assert!(!is_known(b"write"));
    }

    #[test]
    fn an_answer_that_comes_late_takes_nothing_away() {
        let statements = PreparedStatements::new(MIB);
        let catalog = Catalog::new(Snapshot::default());
        let grounds = || Grounds::of(Verb::Other, b"LIST ROLES", None, &catalog.snapshot());
        let late = grounds();
        catalog.replace(Snapshot::default());
        statements.insert(b"id", grounds(), Meaning::Plain, 10);
        statements.insert(b"id", late, Meaning::Plain, 10);
        assert!(statements.get(b"id", &catalog.snapshot()).is_some());
    }
}
