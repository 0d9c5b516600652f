//! The indexes of the catalog.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use async_trait::async_trait;
use index::full_text::is_full_text_class;
use index::target::is_filter_type;
use schema::{Column, ColumnKind, SearchIndexMetadata, Table};
use storage::Storage;
use store::database::{
    DiscoveredIndexes, FilterColumn, IndexIdentity, IndexName, IndexedColumnKind, KeyColumn,
    KeySchema, SchemaFollower, StructureOptions, TableIdentity, TokenRange, full_text_options,
    is_key_type, is_text_type, vector_options,
};
use tokio::sync::watch;
use uuid::Uuid;

/// Time after which indexes that could not be taken in are reported again.
const AGAIN: Duration = Duration::from_secs(1);

/// The schema, which reports each change of the catalog.
pub struct StoredSchema {
    storage: Storage,
    changes: watch::Receiver<()>,
    told: bool,
    again: bool,
    /// The key columns of each table with an index, by the names that were reported first.
    keys: HashMap<Uuid, KeySchema>,
}

impl StoredSchema {
    pub fn new(storage: Storage) -> StoredSchema {
        StoredSchema {
            changes: storage.schema_changes(),
            storage,
            told: false,
            again: false,
            keys: HashMap::new(),
        }
    }

    fn indexes(&mut self) -> DiscoveredIndexes {
        let catalog = self.storage.catalog();
        let keyspaces = catalog.keyspaces.values();
        let tables = keyspaces.flat_map(|keyspace| keyspace.tables.values());
        let indexes = tables.flat_map(|table| {
            let indexes = table.indexes.values();
            // An index that can't be built was refused when it was created.
            indexes.filter_map(|index| identity(table, index).ok())
        });
        let indexes: Vec<IndexIdentity> = indexes.collect();
        let keys = indexes.iter().map(|index| {
            let id = index.table.id;
            let former = self.keys.get(&id);
            (id, former.unwrap_or(&index.keys).clone())
        });
        self.keys = keys.collect();
        let indexes = indexes.into_iter().map(|index| {
            let index = with_key(&index, &self.keys[&index.table.id]);
            (index.name.clone(), index)
        });
        DiscoveredIndexes {
            indexes: indexes.collect(),
            unclear: HashSet::new(),
        }
    }
}

#[async_trait]
impl SchemaFollower for StoredSchema {
    async fn changed(&mut self) -> DiscoveredIndexes {
        if self.told {
            tokio::select! {
                changed = self.changes.changed() => {
                    if changed.is_err() {
                        // The storage is closed, and the service soon will be.
                        std::future::pending::<()>().await;
                    }
                }
                () = tokio::time::sleep(AGAIN), if self.again => {}
            }
        }
        self.changes.mark_unchanged();
        self.told = true;
        self.again = false;
        self.indexes()
    }

    fn request_again(&mut self) {
        self.again = true;
    }

    /// The time in the catalog is exact.
    fn truncated_ms(&mut self, _: Uuid, told_ms: Option<i64>, _: Option<i64>) -> Option<i64> {
        told_ms
    }
}

/// The identity of an index, or the reason why it can't be built.
pub fn identity(table: &Table, index: &SearchIndexMetadata) -> Result<IndexIdentity, &'static str> {
    let column = table.column(&index.column).ok_or("its column is gone")?;
    let columns = |columns: Vec<&Column>| {
        let columns = columns.into_iter().map(key_column);
        columns.collect::<Option<Vec<KeyColumn>>>()
    };
    let keys = KeySchema {
        partition: columns(table.partition_key()).ok_or("a key of such a type has no form")?,
        clustering: columns(table.clustering_key()).ok_or("a key of such a type has no form")?,
    };
    let name = IndexName {
        keyspace: table.keyspace.clone(),
        index: index.name.clone(),
    };
    let filter_columns = filter_columns(table, index, &keys)?;
    Ok(IndexIdentity {
        options: structure_options(&name, index, column)?,
        name,
        table: TableIdentity {
            keyspace: table.keyspace.clone(),
            table: table.name.clone(),
            id: table.id.0,
        },
        truncated_ms: table.truncated_at_ms,
        column: index.column.clone(),
        column_kind: column_kind(column)?,
        local_key: index.local_key.clone(),
        filter_columns,
        version: Some(index.version),
        keys,
        range: TokenRange::WHOLE_RING,
    })
}

/// The options of the structure of an index on a column.
fn structure_options(
    name: &IndexName,
    index: &SearchIndexMetadata,
    column: &Column,
) -> Result<StructureOptions, &'static str> {
    let options: HashMap<String, String> = index.options.clone().into_iter().collect();
    if is_full_text_class(&index.class_name) {
        return match is_text_type(&column.cql_type) {
            true => Ok(full_text_options(&options)),
            false => Err("its column is no text"),
        };
    }
    let dimensions = column.cql_type.float_vector_dimensions();
    let dimensions = dimensions.ok_or("its column is no vector of floats")?;
    Ok(vector_options(name, dimensions.into(), &options))
}

fn column_kind(column: &Column) -> Result<IndexedColumnKind, &'static str> {
    match column.kind {
        ColumnKind::Regular => Ok(IndexedColumnKind::Regular),
        ColumnKind::Static => Ok(IndexedColumnKind::Static),
        ColumnKind::Clustering { position, .. } => Ok(IndexedColumnKind::Clustering(position)),
        ColumnKind::PartitionKey { .. } => Err("its column is one of the partition key"),
    }
}

/// The identity of an index with these names for the columns of its table's key.
fn with_key(index: &IndexIdentity, keys: &KeySchema) -> IndexIdentity {
    let named = |name: &String| {
        let mut columns = index.keys.columns().zip(keys.columns());
        let found = columns.find(|(column, _)| column.name == *name);
        found.map_or(name, |(_, column)| &column.name).clone()
    };
    IndexIdentity {
        column: match index.column_kind {
            IndexedColumnKind::Clustering(_) => named(&index.column),
            IndexedColumnKind::Regular | IndexedColumnKind::Static => index.column.clone(),
        },
        local_key: index.local_key.iter().map(named).collect(),
        keys: keys.clone(),
        ..index.clone()
    }
}

/// The identity of an index with the names that the columns of the table's key have, if these are
/// others than those of the identity.
pub fn renamed(table: &Table, index: &IndexIdentity) -> Option<IndexIdentity> {
    let key = table.partition_key().into_iter();
    let names = key.chain(table.clustering_key()).map(|column| &column.name);
    if names
        .clone()
        .eq(index.keys.columns().map(|column| &column.name))
    {
        return None;
    }
    let mut keys = index.keys.clone();
    let columns = keys.partition.iter_mut().chain(&mut keys.clustering);
    for (column, name) in columns.zip(names) {
        column.name.clone_from(name);
    }
    Some(with_key(index, &keys))
}

/// The columns of the local key and of filters that are not in the primary key, and then those with
/// an index of their own.
fn filter_columns(
    table: &Table,
    index: &SearchIndexMetadata,
    keys: &KeySchema,
) -> Result<Vec<FilterColumn>, &'static str> {
    let named = index.local_key.iter().chain(&index.filter_columns);
    let own = table.columns_with_an_index().map(|column| &column.name);
    let own = own.filter(|name| !named.clone().any(|other| other == *name));
    named
        .clone()
        .chain(own)
        .filter(|name| !keys.columns().any(|key| key.name == **name))
        .map(|name| {
            let column = table.column(name).ok_or("a filter column is gone")?;
            if !is_filter_type(&column.cql_type) {
                return Err("no search can be filtered by a column of such a type");
            }
            Ok(FilterColumn {
                name: name.clone(),
                cql_type: column.cql_type.clone(),
                is_static: column.kind == ColumnKind::Static,
            })
        })
        .collect()
}

fn key_column(column: &Column) -> Option<KeyColumn> {
    is_key_type(&column.cql_type).then(|| KeyColumn {
        name: column.name.clone(),
        cql_type: column.cql_type.clone(),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use schema::{IndexedPart, SecondaryIndex};
    use value::CqlType;

    use super::*;
    use crate::fixtures::table;

    #[test]
    fn filter_columns_are_those_outside_the_primary_key() {
        let of = |local_key, filter_columns| {
            let table = table(local_key, filter_columns);
            identity(&table, &table.indexes["i"])
        };
        let plain = of(&[], &[]).unwrap();
        assert_eq!((plain.local_key, plain.filter_columns), (vec![], vec![]));
        let column = |name: &str, cql_type, is_static| FilterColumn {
            name: name.to_owned(),
            cql_type,
            is_static,
        };
        let local = of(&["p", "n"], &["c", "s"]).unwrap();
        assert_eq!(local.local_key, ["p", "n"]);
        assert!(local.observes_static());
        assert_eq!(
            local.filter_columns,
            [
                column("n", CqlType::Int, false),
                column("s", CqlType::Text, true)
            ]
        );
        let mut own = table(&[], &["n"]);
        let indexed = ["n", "s"].map(|name| own.column(name).unwrap().id);
        for (at, column) in indexed.into_iter().enumerate() {
            let index = SecondaryIndex {
                name: format!("own{at}"),
                column,
                part: IndexedPart::Value,
                is_local: false,
                class_name: Some("sai".to_owned()),
                options: BTreeMap::new(),
                version: Uuid::from_u128(at as u128),
            };
            let name = index.name.clone();
            own.secondary_indexes.insert(name, Arc::new(index));
        }
        assert_eq!(
            identity(&own, &own.indexes["i"]).unwrap().filter_columns,
            [
                column("n", CqlType::Int, false),
                column("s", CqlType::Text, true)
            ]
        );
        assert!(of(&[], &["gone"]).is_err());
        assert!(of(&[], &["d"]).is_err());
    }

    #[test]
    fn texts_of_each_kind_of_column_are_indexed() {
        let on = |column: &str| {
            let mut table = table(&[], &["n"]);
            let index = Arc::make_mut(table.indexes.get_mut("i").unwrap());
            index.class_name = "fulltext_index".to_owned();
            index.column = column.to_owned();
            table.columns[1].cql_type = CqlType::Ascii;
            identity(&table, &table.indexes["i"])
        };
        let of_static = on("s").unwrap();
        assert_eq!(of_static.column_kind, IndexedColumnKind::Static);
        assert!(of_static.observes_static());
        let of_key = on("c").unwrap();
        assert_eq!(of_key.column_kind, IndexedColumnKind::Clustering(0));
        assert_eq!(of_key.column_in_key(), Some(1));
        assert!(matches!(of_key.options, StructureOptions::FullText(_)));
        assert_eq!(on("v"), Err("its column is no text"));
        // Its clustering column may get another name.
        let keys = KeySchema {
            clustering: vec![KeyColumn {
                name: "former".to_owned(),
                cql_type: CqlType::Ascii,
            }],
            ..of_key.keys.clone()
        };
        assert_eq!(with_key(&of_key, &keys).column, "former");
    }

    #[test]
    fn an_index_follows_the_names_of_its_key() {
        let told = |table: &Table| identity(table, &table.indexes["i"]).unwrap();
        let before = table(&["p", "n"], &["c"]);
        let first = told(&before);
        assert_eq!(renamed(&before, &first), None);
        let mut after = before.clone();
        after.columns[0].name = "c".to_owned();
        after.columns[1].name = "p".to_owned();
        let mut index = SearchIndexMetadata::clone(&after.indexes["i"]);
        index.local_key[0] = "c".to_owned();
        after.indexes.insert("i".to_owned(), Arc::new(index));
        let now = told(&after);
        assert_ne!(now, first);
        assert_eq!(now.local_key, ["c", "n"]);
        assert_eq!(renamed(&after, &first), Some(now.clone()));
        assert_eq!(with_key(&now, &first.keys), first);
    }
}
