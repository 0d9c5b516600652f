//! Prepared statements: found by id, planned again when the schema has changed, and forgotten when
//! they take too much memory.
//!
//! A statement is executed only against the table and with the types that were reported to its
//! client. If these have changed, EXECUTE answers UNPREPARED, and drivers prepare the statement
//! again. In version 5 the answer itself reports columns that have changed.

use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use cql::ast::ParsedStatement;
use cql::error::{CqlError, ErrorKind};
use cql::wire::ColumnsMetadata;
use quick_cache::sync::Cache;
use quick_cache::{OptionsBuilder, Weighter};
use schema::TableId;
use uuid::Uuid;

use super::convert::metadata;
use super::redaction::redacted;
use super::weight;
use crate::database::CqlDatabase;
use crate::planner::{self, StatementPlan};
use crate::security::audit::StatementSubject;
use crate::statement::ColumnSpec;
use crate::system::prepared_texts::{PreparedText, PreparedTexts};

/// The id of a prepared statement: a hash of its keyspace, its text and the types of its bind
/// markers. Every node gives the same id, also after a restart. As in Cassandra, the keyspace in
/// use is no part of the id where each table has its own: drivers prepare a statement again on
/// connections that use another keyspace, and expect the id that they know.
///
/// The types are part of the id so that values serialised for other types cannot come with it. A
/// driver that prepares the statement again with other types gets another id, and does not send the
/// old values with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct PreparedId([u8; 16]);

impl PreparedId {
    /// The id of a statement that is prepared in a keyspace, with the columns of its bind markers.
    pub fn of(keyspace: Option<&str>, text: &str, variables: &[ColumnSpec]) -> Self {
        let keyspace = keyspace.unwrap_or_default();
        let mut named = Vec::with_capacity(keyspace.len() + 1 + text.len());
        named.extend_from_slice(keyspace.as_bytes());
        named.push(0);
        named.extend_from_slice(text.as_bytes());
        for variable in variables {
            named.push(0);
            named.extend_from_slice(variable.cql_type.to_string().as_bytes());
        }
        PreparedId(*Uuid::new_v5(&Uuid::nil(), &named).as_bytes())
    }

    pub fn to_bytes(self) -> Bytes {
        Bytes::copy_from_slice(&self.0)
    }
}

/// A statement that clients execute by its id.
pub(super) struct ExecutableStatement {
    pub id: PreparedId,
    /// The text of the statement, which traces show.
    pub text: Box<str>,
    pub parsed: ParsedStatement,
    /// The keyspace that was in use when the statement was prepared, unless it names its own.
    pub keyspace: Option<String>,
    /// The subject of its executions, for the audit log.
    pub subject: StatementSubject,
    /// The memory that the statement takes, in bytes, estimated.
    bytes: usize,
    resolved: ArcSwap<PlannedStatement>,
}

/// A statement resolved against one version of the catalog.
pub(super) struct PlannedStatement {
    version: Uuid,
    /// The tables that the plan reads or writes.
    tables: Vec<TableId>,
    pub plan: Arc<StatementPlan>,
    pub variables: ColumnsMetadata,
    /// The columns of the answer as reported to clients, if the plan knows them.
    pub result: Option<ColumnsMetadata>,
    /// The id of these columns. Clients of version 5 send it to say which columns they expect.
    pub result_id: Bytes,
    /// Whether clients may rely on the columns that were reported to them when they prepared the
    /// statement. They may not once the schema has changed these columns.
    pub columns_are_as_prepared: bool,
}

impl PlannedStatement {
    fn new(
        database: &CqlDatabase,
        keyspace: Option<&str>,
        parsed: &ParsedStatement,
    ) -> Result<PlannedStatement, CqlError> {
        // The version is read before planning. If the schema changes meanwhile, the next execution
        // plans again.
        let version = database.storage.catalog().version;
        let plan = planner::prepare(database, keyspace, parsed)?;
        let result = result_columns(&plan);
        Ok(PlannedStatement {
            version,
            tables: plan.tables(),
            variables: metadata(plan.variables()),
            result_id: columns_id(result.unwrap_or_default()),
            result: result.map(metadata),
            plan: Arc::new(plan),
            columns_are_as_prepared: true,
        })
    }

    /// Whether everything that was reported to a client about `earlier` also holds for this one,
    /// except for the columns of the answer if they `may_change`.
    fn matches_reported(&self, earlier: &PlannedStatement, may_change: bool) -> bool {
        self.tables == earlier.tables
            && self.variables == earlier.variables
            && (may_change || self.result == earlier.result)
    }
}

/// The id of an answer's columns.
fn columns_id(columns: &[ColumnSpec]) -> Bytes {
    let named = columns.iter();
    query::columns_id(b"", named.map(|column| (&*column.name, &column.cql_type)))
}

fn result_columns(plan: &StatementPlan) -> Option<&[ColumnSpec]> {
    plan.result_columns().map(|columns| &**columns)
}

impl ExecutableStatement {
    /// Resolves a statement for the first time.
    pub fn new(
        database: &CqlDatabase,
        keyspace: Option<&str>,
        text: &str,
        parsed: ParsedStatement,
    ) -> Result<ExecutableStatement, CqlError> {
        let keyspace = keyspace.filter(|_| !parsed.statement.is_qualified());
        let resolved = PlannedStatement::new(database, keyspace, &parsed)?;
        Ok(ExecutableStatement {
            id: PreparedId::of(keyspace, text, resolved.plan.variables()),
            text: text.into(),
            subject: StatementSubject::of(&parsed.statement, keyspace),
            parsed,
            keyspace: keyspace.map(str::to_owned),
            bytes: weight::of_prepared(text, &resolved.plan),
            resolved: ArcSwap::from_pointee(resolved),
        })
    }

    /// The memory that the statement takes, in bytes, estimated.
    #[cfg(test)]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The statement as the system table shows it, without secrets.
    fn shown(&self) -> PreparedText {
        let text = redacted(&self.text, usize::MAX, Some(&self.parsed.statement));
        PreparedText {
            id: self.id.to_bytes(),
            keyspace: self.keyspace.clone(),
            text: text.into_owned(),
        }
    }

    /// The resolved statement that PREPARE describes to its client.
    pub fn reported(&self) -> Arc<PlannedStatement> {
        self.resolved.load_full()
    }

    /// The statement with a plan for the present schema. The columns of its answer `may_change` if
    /// the answer reports the change to the client, as in version 5.
    ///
    /// # Errors
    /// UNPREPARED if what was reported to clients about the statement no longer holds, or if the
    /// statement no longer fits the schema.
    pub fn resolved(
        &self,
        database: &CqlDatabase,
        may_change: bool,
    ) -> Result<Arc<PlannedStatement>, CqlError> {
        let current = self.resolved.load();
        if current.version == database.storage.catalog().version {
            return Ok(Arc::clone(&current));
        }
        match PlannedStatement::new(database, self.keyspace.as_deref(), &self.parsed) {
            Ok(newer) if newer.matches_reported(&current, may_change) => Ok(self.renew(newer)),
            Err(error) if current.tables.is_empty() => Err(error),
            Ok(_) | Err(_) => Err(outdated(&self.id.to_bytes())),
        }
    }

    /// Replaces the plan by a newer one. Once its columns have changed, every answer has its
    /// metadata, since some clients may still go by the earlier columns.
    fn renew(&self, mut newer: PlannedStatement) -> Arc<PlannedStatement> {
        let current = self.resolved.load();
        newer.columns_are_as_prepared =
            current.columns_are_as_prepared && newer.result == current.result;
        let newer = Arc::new(newer);
        self.resolved.store(newer.clone());
        newer
    }
}

/// The prepared statements of a node.
pub(super) struct PlanCache {
    by_id: Arc<Cache<PreparedId, Arc<ExecutableStatement>, StatementWeighter>>,
    /// The most bytes that one statement may take.
    statement_bytes_max: usize,
}

#[derive(Clone)]
struct StatementWeighter;

/// The number of parts of the cache. Each has its share of the bytes, in which the largest
/// statement must fit together with others.
const PARTS: usize = 4;

/// The expected size of a prepared statement in bytes. It sets the initial capacity of the cache.
const EXPECTED_BYTES: u64 = 4 << 10;

impl Weighter<PreparedId, Arc<ExecutableStatement>> for StatementWeighter {
    fn weight(&self, _: &PreparedId, prepared: &Arc<ExecutableStatement>) -> u64 {
        prepared.bytes as u64
    }
}

impl PlanCache {
    /// Keeps statements of `bytes_max` bytes in total.
    ///
    /// # Panics
    /// Never, since all options are given.
    pub fn new(bytes_max: u64) -> Self {
        let expected = usize::try_from(bytes_max / EXPECTED_BYTES).unwrap_or(usize::MAX);
        let options = OptionsBuilder::new()
            .shards(PARTS)
            .estimated_items_capacity(expected.max(1))
            .weight_capacity(bytes_max)
            .build()
            .expect("both capacities are given");
        PlanCache {
            by_id: Arc::new(Cache::with_options(
                options,
                StatementWeighter,
                Default::default(),
                Default::default(),
            )),
            statement_bytes_max: usize::try_from(bytes_max).unwrap_or(usize::MAX) / PARTS / 2,
        }
    }

    /// Lets the system table of prepared statements find these.
    pub fn show_in(&self, texts: &PreparedTexts) {
        let by_id = Arc::clone(&self.by_id);
        texts.found_by(move |id| match id {
            None => by_id.iter().map(|(_, prepared)| prepared.shown()).collect(),
            Some(id) => {
                let id = <[u8; 16]>::try_from(id).ok();
                let prepared = id.and_then(|id| by_id.peek(&PreparedId(id)));
                prepared.iter().map(|prepared| prepared.shown()).collect()
            }
        });
    }

    /// Finds a statement by its id.
    ///
    /// # Errors
    /// UNPREPARED if the id is unknown, which makes drivers prepare the statement again.
    pub fn find(&self, id: &Bytes) -> Result<Arc<ExecutableStatement>, CqlError> {
        <[u8; 16]>::try_from(&id[..])
            .ok()
            .and_then(|id| self.by_id.get(&PreparedId(id)))
            .ok_or_else(|| {
                let message = format!(
                    "Prepared query with ID {} not found (either the query was not prepared on this host \
                     (maybe the host has been restarted?) or you have prepared too many queries and it has \
                     been evicted from the internal cache)",
                    hex(id)
                );
                unprepared(id, message)
            })
    }

    /// Keeps a statement that was just resolved, and returns it as clients share it. Other
    /// statements, the least useful, may be forgotten.
    ///
    /// # Errors
    /// If the statement is too large for the cache.
    pub fn keep(
        &self,
        prepared: ExecutableStatement,
    ) -> Result<Arc<ExecutableStatement>, CqlError> {
        if prepared.bytes > self.statement_bytes_max {
            return Err(CqlError::invalid(format!(
                "This statement is too large to be prepared: it would take about {} KiB, and {} KiB is the most; \
                 use fewer markers and literals, or do not prepare it",
                prepared.bytes >> 10,
                self.statement_bytes_max >> 10
            )));
        }
        if let Some(known) = self.by_id.get(&prepared.id) {
            if let Some(resolved) = Arc::into_inner(prepared.resolved.into_inner()) {
                known.renew(resolved);
            }
            return Ok(known);
        }
        let prepared = Arc::new(prepared);
        self.by_id.insert(prepared.id, prepared.clone());
        Ok(prepared)
    }
}

fn outdated(id: &Bytes) -> CqlError {
    let message = format!(
        "Prepared query with ID {} was prepared for a table that has changed since; prepare it again",
        hex(id)
    );
    unprepared(id, message)
}

fn unprepared(id: &Bytes, message: String) -> CqlError {
    CqlError::new(ErrorKind::Unprepared { id: id.clone() }, message)
}

fn hex(id: &[u8]) -> String {
    use std::fmt::Write;

    /// The number of bytes of an id that are printed. An id comes from a client and may be long.
    const SHOWN_BYTES: usize = 16;
    let mut text = String::new();
    for byte in id.iter().take(SHOWN_BYTES) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_tells_keyspaces_and_texts_apart() {
        let of = |keyspace, text| PreparedId::of(keyspace, text, &[]);
        let id = of(Some("a"), "SELECT 1");
        assert_eq!(id, of(Some("a"), "SELECT 1"));
        assert_ne!(id, of(Some("b"), "SELECT 1"));
        assert_ne!(id, of(None, "SELECT 1"));
        assert_ne!(id, of(Some("a"), "SELECT 2"));
        assert_ne!(of(Some("a"), "b"), of(None, "ab"));
        assert_eq!(id.to_bytes().len(), 16);
    }

    #[test]
    fn an_unknown_id_comes_back_with_the_error() {
        let statements = PlanCache::new(1 << 20);
        for id in [
            Bytes::from_static(&[1; 16]),
            Bytes::from_static(b"short"),
            Bytes::new(),
        ] {
            let error = statements.find(&id).err().unwrap();
            assert_eq!(error.kind, ErrorKind::Unprepared { id });
        }
    }
}
