//! The tables of a point that are restored, and the files that this needs.

use backup::{FileSelection, PointManifest, PointTable};
use node::schema_changes::check_new_keyspace;
use schema::log_table_name;

use crate::BackupTaskError;

/// The tables that are restored, and the name of their keyspace here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableChoice {
    /// The keyspace; all without it.
    pub keyspace: Option<String>,
    /// The table of that keyspace; all without it.
    pub table: Option<String>,
    /// The name that the keyspace gets; its own without it.
    pub to_keyspace: Option<String>,
}

impl TableChoice {
    /// The choice of these names.
    ///
    /// # Errors
    /// If a table or another name is given without a keyspace, or if no keyspace may have the other
    /// name.
    pub fn new(
        keyspace: Option<String>,
        table: Option<String>,
        to_keyspace: Option<String>,
    ) -> Result<TableChoice, BackupTaskError> {
        if keyspace.is_none() && table.is_some() {
            return Err(BackupTaskError::Wrong(
                "a table without its keyspace: name the keyspace, too".to_owned(),
            ));
        }
        if keyspace.is_none() && to_keyspace.is_some() {
            return Err(BackupTaskError::Wrong(
                "another name for a keyspace that is not named: name the keyspace to restore, too"
                    .to_owned(),
            ));
        }
        if let Some(name) = &to_keyspace {
            check_new_keyspace(name).map_err(|error| {
                BackupTaskError::Wrong(format!("--to-keyspace: {}", error.message))
            })?;
        }
        Ok(TableChoice {
            keyspace,
            table,
            to_keyspace,
        })
    }

    /// Whether all is restored under its own names.
    pub fn is_whole(&self) -> bool {
        self.keyspace.is_none()
    }

    /// Whether a table is chosen.
    pub fn has(&self, keyspace: &str, table: &str) -> bool {
        let is_named = |name: Option<&String>, it: &str| name.is_none_or(|name| name == it);
        is_named(self.keyspace.as_ref(), keyspace) && is_named(self.table.as_ref(), table)
    }

    /// The name that a keyspace of the point gets.
    pub fn keyspace_here<'a>(&'a self, keyspace: &'a str) -> &'a str {
        self.to_keyspace.as_deref().unwrap_or(keyspace)
    }

    /// The tables of a point that are chosen.
    ///
    /// # Errors
    /// If there is none.
    pub(crate) fn of_point<'a>(
        &self,
        point: &'a PointManifest,
    ) -> Result<Vec<&'a PointTable>, BackupTaskError> {
        let tables = point.tables.iter();
        let chosen: Vec<&PointTable> = tables
            .filter(|table| self.has(&table.keyspace, &table.table) && !is_log(point, table))
            .collect();
        // A server without tables has a schema and roles that can be restored.
        if !chosen.is_empty() || self.is_whole() {
            return Ok(chosen);
        }
        let what = match (&self.keyspace, &self.table) {
            (Some(keyspace), Some(table)) => format!("table {keyspace}.{table}"),
            (Some(keyspace), None) => format!("keyspace {keyspace} with tables"),
            (None, _) => "table".to_owned(),
        };
        let mut known: Vec<&str> = point.tables.iter().map(|it| it.keyspace.as_str()).collect();
        known.sort_unstable();
        known.dedup();
        Err(BackupTaskError::Wrong(format!(
            "point {} has no {what}; its keyspaces: {}",
            point.id,
            known.join(", ")
        )))
    }
}

/// Whether a table of a point is the CDC log of another, which is made with that and begins empty.
fn is_log(point: &PointManifest, table: &PointTable) -> bool {
    let mut others = point.tables.iter();
    others.any(|other| {
        other.keyspace == table.keyspace && log_table_name(&other.table) == table.table
    })
}

/// The files of a point that are needed to read these tables: the schema, the journals, which have
/// rows of all tables, and the rows of these.
pub(crate) fn files_of(point: &PointManifest, tables: &[&PointTable]) -> FileSelection {
    let all = point.tables.iter().flat_map(|table| &table.folders);
    let all: Vec<&String> = all.collect();
    let rows: Vec<&String> = tables
        .iter()
        .filter_map(|table| table.folders.first())
        .collect();
    let is_needed = |path: &str| {
        let is_of_a_table = all.iter().any(|folder| is_below(path, folder));
        let is_of_these = rows.iter().any(|folder| is_below(path, folder));
        is_of_these || !is_of_a_table && !is_below(path, "indexes")
    };
    let files = point.files.iter().map(|file| &file.path);
    FileSelection::Below(files.filter(|path| is_needed(path)).cloned().collect())
}

/// Whether a path is in a folder.
fn is_below(path: &str, folder: &str) -> bool {
    let rest = path.strip_prefix(folder);
    rest.is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point() -> PointManifest {
        let file = |path: &str| serde_json::json!({"path": path, "bytes": 1, "chunks": []});
        let table = |keyspace: &str, table: &str, folders: &[&str]| {
            serde_json::json!({
                "keyspace": keyspace, "table": table, "id": table, "rows": null, "digest": null, "folders": folders,
            })
        };
        let point = serde_json::json!({
            "id": "20260105T000000Z-00000001",
            "kind": "database",
            "version": "1",
            "taken_at_micros": 0,
            "server": {"id": "00000000-0000-0000-0000-000000000001", "name": "s"},
            "tables": [
                table("ks", "a", &["db/keyspaces/7", "db/keyspaces/8"]),
                table("ks", "b", &["db/keyspaces/77"]),
                table("other", "a", &["db/keyspaces/9"]),
                table("other", "a_scylla_cdc_log", &["db/keyspaces/10"]),
            ],
            "folders": [],
            "files": [
                file("annulus-storage"), file("db/1.jnl"), file("db/keyspaces/0/current"),
                file("db/keyspaces/7/tables/1"), file("db/keyspaces/8/tables/1"),
                file("db/keyspaces/77/tables/1"), file("db/keyspaces/9/tables/1"),
                file("db/keyspaces/10/tables/1"), file("indexes/snapshots/i/1"),
            ],
            "schema": [],
            "sent_bytes": 0,
            "sent_objects": 0,
        });
        serde_json::from_value(point).unwrap()
    }

    fn choice(keyspace: Option<&str>, table: Option<&str>) -> TableChoice {
        let owned = |name: Option<&str>| name.map(str::to_owned);
        TableChoice::new(owned(keyspace), owned(table), None).unwrap()
    }

    fn paths(keyspace: Option<&str>, table: Option<&str>) -> Vec<String> {
        let point = point();
        let tables = choice(keyspace, table).of_point(&point).unwrap();
        match files_of(&point, &tables) {
            FileSelection::Below(paths) => paths,
            FileSelection::All => panic!("indexes are not needed"),
        }
    }

    #[test]
    fn a_table_needs_its_rows_and_what_is_of_no_table() {
        assert_eq!(
            paths(Some("ks"), Some("a")),
            [
                "annulus-storage",
                "db/1.jnl",
                "db/keyspaces/0/current",
                "db/keyspaces/7/tables/1"
            ]
        );
        let of_keyspace = paths(Some("ks"), None);
        assert!(
            of_keyspace
                .iter()
                .any(|path| path == "db/keyspaces/77/tables/1")
        );
        assert!(
            !of_keyspace
                .iter()
                .any(|path| path.starts_with("db/keyspaces/9"))
        );
        let all = paths(None, None);
        // But for the log, the secondary index and the snapshots.
        assert_eq!(all.len(), 6, "{all:?}");
    }

    #[test]
    fn another_name_is_one_that_a_keyspace_may_have() {
        let long = "k".repeat(49);
        let named = |name: &str| {
            let owned = Some(name.to_owned());
            TableChoice::new(Some("ks".to_owned()), None, owned)
        };
        for name in ["", "system", "system_auth", "a/../../b", "UPPER x", &long] {
            let refused = named(name).unwrap_err().to_string();
            assert!(refused.starts_with("--to-keyspace: "), "{refused}");
        }
        assert!(named("Shop_2").is_ok());
    }

    #[test]
    fn a_name_that_the_point_has_not_is_refused_with_those_that_it_has() {
        let error = choice(Some("kss"), None).of_point(&point()).unwrap_err();
        assert!(error.to_string().ends_with("ks, other"), "{error}");
        assert!(choice(Some("other"), Some("b")).of_point(&point()).is_err());
    }
}
