//! Derives the identity of an index from its entries in the schema.

use std::collections::HashMap;

use index::full_text::is_full_text_class;
use index::options::{is_vector_index, version};
use index::target::{StoredTarget, is_filter_type};
use scylla::cluster::ClusterState;
use scylla::frame::response::result::ColumnType;
use uuid::Uuid;

use super::native_type::of_driver;
use super::schema_statements::{ListedColumn, ListedIndex};
use crate::identity::{
    FilterColumn, IndexIdentity, IndexedColumnKind, StructureOptions, TableIdentity, TokenRange,
};
use crate::index_options::{full_text_options, is_text_type, vector_options};
use crate::keys::{KeyColumn, KeySchema, is_key_type};

/// The entries of the schema that belong to an index. Each is `None` if the schema lacks it, as
/// when it was made or dropped a moment ago.
#[derive(Clone, Debug)]
pub(super) struct IndexFacts {
    /// The options of the index.
    pub options: Option<HashMap<String, String>>,
    /// The columns that the index is on, as the options tell.
    pub target: Option<StoredTarget>,
    /// The columns of the target, and those of `own`, that are there, by name.
    pub columns: HashMap<String, ListedColumn>,
    /// The columns of the table with an index of the database's own, in the order of their names.
    pub own: Vec<String>,
    /// The id of the table.
    pub table_id: Option<Uuid>,
    /// When the table was last truncated, milliseconds since the epoch. `None` if no truncation is
    /// known.
    pub truncated_ms: Option<i64>,
}

/// The result of describing an entry of the schema's list of indexes.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum IndexDescription {
    /// An index to be built.
    Index(Box<IndexIdentity>),
    /// An index that this service doesn't build: not a vector index, or one that isn't supported.
    NotOurs,
    /// The schema is about to change, or the driver hasn't seen all of it.
    Unclear,
}

/// Describes an index. The second value is a remark for the operator, if there is one to be made.
pub(super) fn describe(
    state: &ClusterState,
    listed: &ListedIndex,
    facts: &IndexFacts,
) -> (IndexDescription, Option<String>) {
    let Some(class) = IndexClass::of(listed) else {
        return (IndexDescription::NotOurs, None);
    };
    let IndexFacts {
        options: Some(options),
        target: Some(target),
        columns,
        own,
        table_id: Some(table_id),
        truncated_ms,
    } = facts
    else {
        return (IndexDescription::Unclear, None);
    };
    let not_ours = |why: String| (IndexDescription::NotOurs, Some(why));
    let Some(column) = columns.get(&target.column) else {
        return (IndexDescription::Unclear, None);
    };
    let structure = match class.options(listed, target, column, options) {
        Ok(structure) => structure,
        Err(why) => return not_ours(why),
    };
    let keys = match key_schema(state, listed) {
        Ok(Some(keys)) => keys,
        Ok(None) => return (IndexDescription::Unclear, None),
        Err(why) => return not_ours(why),
    };
    let column_kind = match kind(target, &keys, column) {
        Ok(kind) => kind,
        Err(why) => return not_ours(why),
    };
    let filter_columns = match filter_columns(target, &keys, columns) {
        Ok(Some(named)) => with_own(named, own, &keys, columns),
        Ok(None) => return (IndexDescription::Unclear, None),
        Err(why) => return not_ours(why),
    };
    let identity = IndexIdentity {
        options: structure,
        name: listed.name.clone(),
        table: TableIdentity {
            keyspace: listed.name.keyspace.clone(),
            table: listed.table.clone(),
            id: *table_id,
        },
        truncated_ms: *truncated_ms,
        column: target.column.clone(),
        column_kind,
        local_key: target.local_key.clone(),
        filter_columns,
        version: version(|name| options.get(name).map(String::as_str)),
        keys,
        range: TokenRange::WHOLE_RING,
    };
    (IndexDescription::Index(Box::new(identity)), None)
}

/// The class of an index that this service builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IndexClass {
    /// An index on vectors.
    Vector,
    /// An index on texts.
    FullText,
}

impl IndexClass {
    /// The class of an entry of the schema's list of indexes; `None` if this service builds no such
    /// index.
    pub(super) fn of(listed: &ListedIndex) -> Option<IndexClass> {
        let option = |name: &str| listed.options.get(name).map(String::as_str);
        if option("class_name").is_some_and(is_full_text_class) {
            return Some(IndexClass::FullText);
        }
        is_vector_index(option).then_some(IndexClass::Vector)
    }

    /// The options of the index's structure. Fails if the column has another type.
    fn options(
        self,
        listed: &ListedIndex,
        target: &StoredTarget,
        column: &ListedColumn,
        options: &HashMap<String, String>,
    ) -> Result<StructureOptions, String> {
        let cql_type = column.cql_type();
        let not_a = |what: &str| {
            let (name, of) = (&target.column, &column.type_text);
            format!("not built: {name} is a {of}, not {what}")
        };
        match self {
            IndexClass::Vector => {
                let dimensions = cql_type.and_then(|of| of.float_vector_dimensions());
                let dimensions = dimensions.ok_or_else(|| not_a("a vector of floats"))?;
                Ok(vector_options(&listed.name, dimensions.into(), options))
            }
            IndexClass::FullText => match cql_type.as_ref().is_some_and(is_text_type) {
                true => Ok(full_text_options(options)),
                false => Err(not_a("a text")),
            },
        }
    }
}

/// The kind of the indexed column. Fails if it is one of the partition key.
fn kind(
    target: &StoredTarget,
    keys: &KeySchema,
    column: &ListedColumn,
) -> Result<IndexedColumnKind, String> {
    let is_named = |key: &KeyColumn| key.name == target.column;
    if keys.partition.iter().any(is_named) {
        return Err(format!(
            "not built: {} is a column of the partition key",
            target.column
        ));
    }
    let clustering = keys.clustering.iter().position(is_named);
    Ok(match clustering {
        Some(at) => IndexedColumnKind::Clustering(at),
        None if column.is_static => IndexedColumnKind::Static,
        None => IndexedColumnKind::Regular,
    })
}

/// The columns of the local key and of filters that are not in the primary key. `None` if one is
/// not there. Fails if no search can be filtered by one.
fn filter_columns(
    target: &StoredTarget,
    keys: &KeySchema,
    columns: &HashMap<String, ListedColumn>,
) -> Result<Option<Vec<FilterColumn>>, String> {
    let names = target.local_key.iter().chain(&target.filter_columns);
    names
        .filter(|name| !keys.columns().any(|key| key.name == **name))
        .map(|name| {
            let Some(column) = columns.get(name) else {
                return Ok(None);
            };
            match column.cql_type().filter(is_filter_type) {
                Some(cql_type) => Ok(Some(FilterColumn {
                    name: name.clone(),
                    cql_type,
                    is_static: column.is_static,
                })),
                None => Err(format!(
                    "not built: no search can be filtered by {name}, which is a {}",
                    column.type_text
                )),
            }
        })
        .collect()
}

/// Adds the columns with an index of the database's own to those that the index names, as far as a
/// search can be filtered by them.
fn with_own(
    named: Vec<FilterColumn>,
    own: &[String],
    keys: &KeySchema,
    columns: &HashMap<String, ListedColumn>,
) -> Vec<FilterColumn> {
    let is_kept = |name: &str| {
        let mut key = keys.columns();
        key.any(|key| key.name == name) || named.iter().any(|named| named.name == name)
    };
    let unnamed = own.iter().filter(|name| !is_kept(name)).filter_map(|name| {
        let column = columns.get(name)?;
        Some(FilterColumn {
            name: name.clone(),
            cql_type: column.cql_type().filter(is_filter_type)?,
            is_static: column.is_static,
        })
    });
    let unnamed: Vec<FilterColumn> = unnamed.collect();
    named.into_iter().chain(unnamed).collect()
}

/// The primary key of an index's table, by the driver's metadata. `None` if the metadata lacks the
/// table or its log. Fails if a key column has a type that can't be indexed.
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
            .map(|name| {
                let typ = table.columns.get(name).map(|column| &column.typ);
                let cql_type = match typ {
                    Some(ColumnType::Native(native)) => of_driver(native),
                    _ => None,
                };
                match cql_type.filter(is_key_type) {
                    Some(cql_type) => Ok(KeyColumn {
                        name: name.clone(),
                        cql_type,
                    }),
                    None => Err(format!(
                        "not built: key column {name} has a type that can't be indexed: {typ:?}"
                    )),
                }
            })
            .collect()
    };
    Ok(Some(KeySchema {
        partition: columns(&table.partition_key)?,
        clustering: columns(&table.clustering_key)?,
    }))
}

#[cfg(test)]
mod tests {
    use value::CqlType;

    use super::*;
    use crate::keys::tests::text_schema;

    #[test]
    fn indexes_on_texts_are_built_of_their_class() {
        let listed = |class: Option<&str>| ListedIndex {
            name: crate::identity::IndexName {
                keyspace: "ks".to_owned(),
                index: "i".to_owned(),
            },
            table: "t".to_owned(),
            options: class
                .map(|class| ("class_name".to_owned(), class.to_owned()))
                .into_iter()
                .collect(),
        };
        let of = |class| IndexClass::of(&listed(class));
        assert_eq!(of(None), Some(IndexClass::Vector));
        assert_eq!(of(Some("vector_index")), Some(IndexClass::Vector));
        assert_eq!(of(Some("FULLTEXT_index")), Some(IndexClass::FullText));
        assert_eq!(of(Some("sai")), None);
        let column = |type_text: &str, is_static| ListedColumn {
            type_text: type_text.to_owned(),
            is_static,
        };
        let text = listed(Some("fulltext_index"));
        let made = |type_text| {
            let target = StoredTarget::decode("c");
            IndexClass::FullText.options(&text, &target, &column(type_text, false), &text.options)
        };
        for type_text in ["text", "varchar", "ascii"] {
            assert!(matches!(made(type_text), Ok(StructureOptions::FullText(_))));
        }
        let error = "not built: c is a set<text>, not a text";
        assert_eq!(made("set<text>").unwrap_err(), error);
        let kind_of = |name: &str, is_static| {
            let target = StoredTarget::decode(name);
            kind(&target, &text_schema(1, 2), &column("text", is_static))
        };
        assert_eq!(kind_of("b", false), Ok(IndexedColumnKind::Regular));
        assert_eq!(kind_of("b", true), Ok(IndexedColumnKind::Static));
        assert_eq!(kind_of("c1", false), Ok(IndexedColumnKind::Clustering(1)));
        assert!(kind_of("p0", false).is_err());
    }

    #[test]
    fn filter_columns_are_those_outside_the_primary_key() {
        let listed = |type_text: &str, is_static| ListedColumn {
            type_text: type_text.to_owned(),
            is_static,
        };
        let columns = HashMap::from([
            ("p0".to_owned(), listed("text", false)),
            ("c0".to_owned(), listed("text", false)),
            ("n".to_owned(), listed("int", false)),
            ("s".to_owned(), listed("frozen<set<uuid>>", true)),
            ("u".to_owned(), listed("address", false)),
            ("d".to_owned(), listed("duration", false)),
        ]);
        let of = |target: &str| {
            let target = StoredTarget::decode(target);
            let found = filter_columns(&target, &text_schema(1, 1), &columns)?;
            Ok::<_, String>(found.map(|found| {
                let shown = found.into_iter();
                shown
                    .map(|column| (column.name, column.cql_type.to_string(), column.is_static))
                    .collect::<Vec<_>>()
            }))
        };
        let shown = |name: &str, cql_type: &str, is_static| {
            (name.to_owned(), cql_type.to_owned(), is_static)
        };
        assert_eq!(of("v"), Ok(Some(Vec::new())));
        assert_eq!(
            of(r#"{"tc":"v","pk":["p0","n"],"fc":["c0","s"]}"#),
            Ok(Some(vec![
                shown("n", "int", false),
                shown("s", "frozen<set<uuid>>", true)
            ]))
        );
        // Those of the database's own indexes come last, without any that can't be stored.
        let own = ["c0", "d", "gone", "n", "s", "u"].map(str::to_owned);
        let named = vec![FilterColumn {
            name: "s".to_owned(),
            cql_type: CqlType::Int,
            is_static: true,
        }];
        let all = with_own(named, &own, &text_schema(1, 1), &columns);
        let names: Vec<&str> = all.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["s", "n"]);
        // The schema may be about to change.
        assert_eq!(of(r#"{"tc":"v","fc":["gone"]}"#), Ok(None));
        for (name, of_type) in [("u", "address"), ("d", "duration")] {
            assert_eq!(
                of(&format!(r#"{{"tc":"v","fc":["{name}"]}}"#)),
                Err(format!(
                    "not built: no search can be filtered by {name}, which is a {of_type}"
                ))
            );
        }
    }
}
