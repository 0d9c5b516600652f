//! The prepared statements that went through this gateway, by their ids.
//!
//! An id is the node's, or the gateway's own for a statement that the gateway carries out. Either
//! is a digest of the keyspace and the text, so one id means the same statement to every client.
//! All connections share the table, which is bounded in bytes, by an estimate.
//!
//! The kind of a statement was decided by one snapshot of the catalog, and holds as long as its
//! [dependencies](crate::dependencies). After that it counts as forgotten, and the statement is
//! prepared again.

use bytes::Bytes;
use cql::error::CqlError;
use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};

use crate::catalog::IndexCatalogSnapshot;
use crate::dependencies::StatementDependencies;
use crate::statement::ClassifiedStatement;

/// Bytes that an entry takes in addition to its id, dependencies and statement.
const ENTRY_BYTES: usize = 256;

/// The factor from the bytes of a statement's text and of the node's answer to PREPARE to the bytes
/// of the [`ClassifiedStatement`], at most about: a bind marker of three characters becomes a term
/// and a name.
const UNDERSTOOD: usize = 32;

/// The length of a text up to which a statement that grows with it is remembered. Bytes.
const TEXT_MAX: usize = 128 << 10;

/// The number of parts of the table. Each has an equal share of the bytes, which the largest entry
/// must fit in.
const PARTS: usize = 16;

/// Checks the length of a text to be prepared whose statement grows with it. `bytes` is that
/// length.
///
/// # Errors
/// If the text is too long for its statement to be remembered.
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

/// A remembered prepared statement.
#[derive(Clone)]
struct WeighedStatement {
    dependencies: StatementDependencies,
    statement: ClassifiedStatement,
    /// Bytes of dependencies and statement, about.
    bytes: usize,
}

/// Weighs entries by their bytes.
#[derive(Clone)]
struct StatementWeigher;

impl Weighter<Bytes, WeighedStatement> for StatementWeigher {
    fn weight(&self, id: &Bytes, entry: &WeighedStatement) -> u64 {
        (ENTRY_BYTES + id.len() + entry.bytes) as u64
    }
}

/// The statements of prepared ids.
pub(crate) struct StatementsById {
    by_id: Cache<Bytes, WeighedStatement, StatementWeigher>,
    /// The most bytes that a statement counts for: a heavier entry would not be stored at all.
    statement_max: usize,
}

impl StatementsById {
    /// Makes an empty table for statements that take `bytes_max` bytes together, about.
    ///
    /// # Panics
    /// Never, since both capacities are given.
    pub(crate) fn new(bytes_max: usize) -> Self {
        let options = OptionsBuilder::new()
            .shards(PARTS)
            .estimated_items_capacity((bytes_max / ENTRY_BYTES).max(1))
            .weight_capacity(bytes_max as u64)
            .build()
            .expect("both capacities are given");
        StatementsById {
            by_id: Cache::with_options(
                options,
                StatementWeigher,
                Default::default(),
                Default::default(),
            ),
            statement_max: bytes_max / PARTS / 2,
        }
    }

    /// The statement of an id under a snapshot; `None` if it is unknown or does not hold any more.
    pub(crate) fn get(
        &self,
        id: &[u8],
        snapshot: &IndexCatalogSnapshot,
    ) -> Option<ClassifiedStatement> {
        let entry = self.by_id.get(id)?;
        if entry.dependencies.hold_at_once(snapshot) {
            return Some(entry.statement);
        }
        let dependencies = entry.dependencies.revalidated(snapshot)?;
        let statement = entry.statement.clone();
        self.put(
            id,
            WeighedStatement {
                dependencies,
                ..entry
            },
        );
        Some(statement)
    }

    /// Remembers a statement and its dependencies. `made_of` is the length of its text and of the
    /// node's answer to PREPARE. Bytes.
    pub(crate) fn insert(
        &self,
        id: &[u8],
        dependencies: StatementDependencies,
        statement: ClassifiedStatement,
        made_of: usize,
    ) {
        let bytes = match statement.grows() {
            true => made_of.saturating_mul(UNDERSTOOD).min(self.statement_max),
            false => 0,
        };
        let entry = WeighedStatement {
            bytes: bytes + dependencies.bytes().min(self.statement_max),
            dependencies,
            statement,
        };
        self.put(id, entry);
    }

    /// Replaces an entry, unless that was understood by a newer snapshot: an answer to PREPARE may
    /// come late, and a client that prepared meanwhile is about to execute.
    fn put(&self, id: &[u8], entry: WeighedStatement) {
        let known = self.by_id.peek(id);
        if known.is_none_or(|known| known.dependencies.epoch() <= entry.dependencies.epoch()) {
            self.by_id.insert(Bytes::copy_from_slice(id), entry);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cql::wire::ColumnsMetadata;

    use super::*;
    use crate::catalog::IndexCatalog;
    use crate::recognise::StatementVerb;
    use crate::writes::test_tables::{events, products};

    const MIB: usize = 1 << 20;

    /// The dependencies of a statement that depends only on its text.
    fn of_text() -> StatementDependencies {
        let snapshot = IndexCatalogSnapshot::default();
        StatementDependencies::of(StatementVerb::Select, b"SELECT 1", None, &snapshot)
    }

    fn remembered(statements: &StatementsById, count: u32) -> usize {
        let snapshot = IndexCatalogSnapshot::default();
        (0..count)
            .filter(|number| statements.get(&number.to_be_bytes(), &snapshot).is_some())
            .count()
    }

    #[test]
    fn ids_beyond_the_capacity_are_forgotten() {
        let statements = StatementsById::new(MIB);
        for number in 0u32..10_000 {
            statements.insert(
                &number.to_be_bytes(),
                of_text(),
                ClassifiedStatement::Plain,
                1_000,
            );
        }
        let known = remembered(&statements, 10_000);
        assert!((2_000..=MIB / ENTRY_BYTES).contains(&known), "{known}");
        let last = statements.get(&9_999u32.to_be_bytes(), &IndexCatalogSnapshot::default());
        assert!(matches!(last, Some(ClassifiedStatement::Plain)));
    }

    #[test]
    fn large_statements_leave_room_for_few() {
        let statements = StatementsById::new(64 * MIB);
        let columns = Arc::new(ColumnsMetadata::default());
        for number in 0u32..1_000 {
            let statement = ClassifiedStatement::RingRead(Some(columns.clone()));
            statements.insert(&number.to_be_bytes(), of_text(), statement, 32 << 10);
        }
        let known = remembered(&statements, 1_000);
        assert!((16..=64).contains(&known), "{known}");
        // An entry that is larger than any other is stored as well.
        let statement = ClassifiedStatement::RingRead(Some(columns));
        statements.insert(b"large", of_text(), statement, 100 * MIB);
        assert!(
            statements
                .get(b"large", &IndexCatalogSnapshot::default())
                .is_some()
        );
    }

    #[test]
    fn a_text_that_is_too_long_is_refused() {
        assert_eq!(check_text(TEXT_MAX), Ok(()));
        assert!(check_text(TEXT_MAX + 1).is_err());
    }

    #[test]
    fn an_id_is_forgotten_when_a_dependency_changes() {
        let statements = StatementsById::new(MIB);
        let catalog = IndexCatalog::new(IndexCatalogSnapshot::default());
        let is_known = |id: &[u8]| statements.get(id, &catalog.snapshot()).is_some();
        let remember = |id: &[u8], text: &[u8]| {
            let dependencies = StatementDependencies::of(
                StatementVerb::Write,
                text,
                Some("shop"),
                &catalog.snapshot(),
            );
            statements.insert(id, dependencies, ClassifiedStatement::Plain, text.len());
        };
        remember(b"write", b"INSERT INTO products (id) VALUES (?)");
        remember(b"batch", b"BEGIN BATCH");
        assert!(is_known(b"write") && is_known(b"batch"));
        let events = Arc::new(events());
        catalog.replace(IndexCatalogSnapshot::new([events.clone()], []));
        assert!(is_known(b"write") && !is_known(b"batch"));
        // From here on the dependencies hold without a comparison.
        let entry = statements.by_id.peek(&b"write"[..]).unwrap();
        assert!(entry.dependencies.hold_at_once(&catalog.snapshot()));
        catalog.replace(IndexCatalogSnapshot::new(
            [events, Arc::new(products())],
            [],
        ));
        assert!(!is_known(b"write"));
    }

    #[test]
    fn an_answer_that_comes_late_takes_nothing_away() {
        let statements = StatementsById::new(MIB);
        let catalog = IndexCatalog::new(IndexCatalogSnapshot::default());
        let dependencies = || {
            StatementDependencies::of(
                StatementVerb::Other,
                b"LIST ROLES",
                None,
                &catalog.snapshot(),
            )
        };
        let late = dependencies();
        catalog.replace(IndexCatalogSnapshot::default());
        statements.insert(b"id", dependencies(), ClassifiedStatement::Plain, 10);
        statements.insert(b"id", late, ClassifiedStatement::Plain, 10);
        assert!(statements.get(b"id", &catalog.snapshot()).is_some());
    }
}
