//! One look at the schema, valid only if nothing changed while it was taken.

use std::collections::{BTreeMap, HashMap, HashSet};

use scylla::cluster::ClusterState;
use scylla::frame::response::result::ColumnType;
use uuid::Uuid;

use super::options::{dimensions, is_vector_index, vector_options, version};
use super::statements::{ListedIndex, Statements};
use super::target::Target;
use crate::db::Db;
use crate::identity::{IndexIdentity, IndexName, TableIdentity, TokenRange};
use crate::keys::{KeyColumn, KeySchema, is_key_type};

/// Why a look failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DiscoveryError {
    /// The database doesn't answer.
    #[error("{0}")]
    Unreachable(String),
    /// The database answers with an error.
    #[error("{0}")]
    Refused(String),
    /// The database answers something unexpected.
    #[error("{0}")]
    Malformed(String),
}

/// What a look came to.
#[derive(Clone, Debug)]
pub enum Round {
    /// The schema is the one seen last.
    Unchanged,
    /// The schema is changing: look again.
    Unsettled,
    /// These indexes there are.
    Found(Discovered),
}

/// The indexes of a schema.
#[derive(Clone, Debug, Default)]
pub struct Discovered {
    /// Those that can be built.
    pub indexes: BTreeMap<IndexName, IndexIdentity>,
    /// Those that can't be described yet: neither new nor gone.
    pub unclear: HashSet<IndexName>,
}

/// Looks at the schema.
#[derive(Default)]
pub struct Discovery {
    statements: Statements,
    /// The schema seen last, as far as it was clear.
    seen: Option<Option<Uuid>>,
    /// The schema that the driver's metadata was refreshed for, and the session it belongs to.
    refreshed: Option<(u64, Uuid)>,
    /// The latest known truncation of each table. Nodes know different times and don't always
    /// answer; what counts never goes back, or one truncation would look like several.
    truncated_ms: HashMap<Uuid, i64>,
    /// What has been said about indexes that are not built.
    said: HashSet<(IndexName, Option<Uuid>)>,
}

/// What an entry of the schema's list of indexes is.
enum Described {
    Index(Box<IndexIdentity>),
    NotOurs,
    Unclear,
}

impl Discovery {
    /// Makes the next look a full one.
    pub fn forget(&mut self) {
        self.seen = None;
        self.refreshed = None;
    }

    /// Looks at the schema if it has changed.
    pub async fn round(&mut self, db: &Db) -> Result<Round, DiscoveryError> {
        let version = self.statements.version(db).await?;
        if self.seen == Some(version) {
            return Ok(Round::Unchanged);
        }
        let agreement = db.session.check_schema_agreement().await;
        let Some(agreed) =
            agreement.map_err(|error| DiscoveryError::Unreachable(error.to_string()))?
        else {
            return Ok(Round::Unsettled);
        };
        if self.refreshed != Some((db.generation, agreed)) {
            db.session
                .refresh_metadata()
                .await
                .map_err(|error| DiscoveryError::Unreachable(error.to_string()))?;
            self.refreshed = Some((db.generation, agreed));
        }
        let mut discovered = Discovered::default();
        for listed in self.statements.indexes(db).await? {
            match self.describe(db, &listed).await? {
                Described::Index(index) => {
                    discovered.indexes.insert(listed.name, *index);
                }
                Described::NotOurs => {}
                Described::Unclear => {
                    discovered.unclear.insert(listed.name);
                }
            }
        }
        if self.statements.version(db).await? != version {
            return Ok(Round::Unsettled);
        }
        if discovered.unclear.is_empty() {
            self.seen = Some(version);
        } else {
            self.forget();
        }
        Ok(Round::Found(discovered))
    }

    async fn describe(
        &mut self,
        db: &Db,
        listed: &ListedIndex,
    ) -> Result<Described, DiscoveryError> {
        if !is_vector_index(&listed.options) {
            return Ok(Described::NotOurs);
        }
        let Some(options) = self.statements.options(db, listed).await? else {
            return Ok(Described::Unclear);
        };
        let version = version(&options);
        let Some(target) = options.get("target").map(|target| Target::decode(target)) else {
            return Ok(Described::Unclear);
        };
        if !target.local_key.is_empty() {
            self.say(&listed.name, version, "local indexes are not built yet");
            return Ok(Described::NotOurs);
        }
        let column_type = self
            .statements
            .column_type(db, listed, &target.column)
            .await?;
        let Some(column_type) = column_type else {
            return Ok(Described::Unclear);
        };
        let Some(dimensions) = dimensions(&column_type) else {
            let why = format!(
                "{} is a {column_type}, not a vector of floats",
                target.column
            );
            self.say(&listed.name, version, &why);
            return Ok(Described::NotOurs);
        };
        let Some(table_id) = self.statements.table_id(db, listed).await? else {
            return Ok(Described::Unclear);
        };
        let keys = match key_schema(&db.session.get_cluster_state(), listed) {
            Ok(Some(keys)) => keys,
            Ok(None) => return Ok(Described::Unclear),
            Err(why) => {
                self.say(&listed.name, version, &why);
                return Ok(Described::NotOurs);
            }
        };
        let table = TableIdentity {
            keyspace: listed.name.keyspace.clone(),
            table: listed.table.clone(),
            id: table_id,
        };
        let truncated_ms = self.truncated_ms(db, &table).await?;
        if !target.filter_columns.is_empty() {
            let why = "built without its filter columns: searches can't be filtered yet";
            self.say(&listed.name, version, why);
        }
        Ok(Described::Index(Box::new(IndexIdentity {
            options: vector_options(&listed.name, dimensions, &options),
            name: listed.name.clone(),
            table,
            truncated_ms,
            column: target.column,
            version,
            keys,
            range: TokenRange::WHOLE_RING,
        })))
    }

    async fn truncated_ms(
        &mut self,
        db: &Db,
        table: &TableIdentity,
    ) -> Result<Option<i64>, DiscoveryError> {
        let truncated_ms = self.statements.truncated_ms(db, table).await?;
        if db.session.get_cluster_state().get_nodes_info().len() == 1 {
            // One node's word is exact, even if its clock was set back in between.
            return Ok(truncated_ms);
        }
        if let Some(truncated_ms) = truncated_ms {
            let latest = self.truncated_ms.entry(table.id).or_insert(truncated_ms);
            *latest = truncated_ms.max(*latest);
        }
        Ok(self.truncated_ms.get(&table.id).copied())
    }

    /// Says something about an index once.
    fn say(&mut self, name: &IndexName, version: Option<Uuid>, what: &str) {
        if self.said.insert((name.clone(), version)) {
            tracing::warn!(index = %name, "{what}");
        }
    }
}

/// The primary key of an index's table, from the driver's metadata; none until the table and its
/// log stand there.
fn key_schema(state: &ClusterState, listed: &ListedIndex) -> Result<Option<KeySchema>, String> {
    let log = format!("{}_scylla_cdc_log", listed.table);
    let Some(keyspace) = state.get_keyspace(&listed.name.keyspace) else {
        return Ok(None);
    };
    let Some(table) = keyspace.tables.get(&listed.table) else {
        return Ok(None);
    };
    if !keyspace.tables.contains_key(&log) || table.partition_key.is_empty() {
        return Ok(None);
    }
    let columns = |names: &[String]| -> Result<Vec<KeyColumn>, String> {
        names
            .iter()
            .map(
                |name| match table.columns.get(name).map(|column| &column.typ) {
                    Some(ColumnType::Native(typ)) if is_key_type(typ) => Ok(KeyColumn {
                        name: name.clone(),
                        typ: typ.clone(),
                    }),
                    typ => Err(format!(
                        "key column {name} of type {typ:?} can't be indexed"
                    )),
                },
            )
            .collect()
    };
    Ok(Some(KeySchema {
        partition: columns(&table.partition_key)?,
        clustering: columns(&table.clustering_key)?,
    }))
}
