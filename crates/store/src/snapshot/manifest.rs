//! The file `current`. It names the generation that counts, the identity of its index, and its
//! position in the log.
//!
//! The file has a line with the format's name, its version and the XXH3-128 of the rest in
//! hexadecimal digits. The rest is a JSON object. The file is replaced by one rename.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use cql::quote::Identifier;
use index::{FullTextOptions, VectorOptions};
use platform::files::{self, FileStep};
use serde::{Deserialize, Serialize};
use uuid::Uuid;
use value::CqlType;
use xxhash_rust::xxh3::xxh3_128;

use super::fault::PersistenceError;
use crate::identity::{FilterColumn, IndexIdentity, StructureClass, StructureOptions};
use crate::keys::{KeyColumn, KeySchema};

/// The name of the file.
pub(crate) const CURRENT: &str = "current";

/// The field of the identity with the id of the table that is the log.
const LOG_ID: &str = "log id";

/// The field of the identity with the time of truncation, milliseconds since the epoch.
const TRUNCATED: &str = "time of truncation";

/// The field of the identity with the id of the table.
const TABLE_ID: &str = "table id";

/// The field of the identity with the version of the index.
const VERSION: &str = "version";

/// The field of the identity with the options.
const OPTIONS: &str = "options";

/// The field of the identity with the primary key.
const KEYS: &str = "keys";

/// The field of the identity with the key of a local index.
const LOCAL_KEY: &str = "local key";

/// The field of the identity with the indexed column.
const COLUMN: &str = "column";

/// The beginning of the words for the options of an index on texts.
const FULL_TEXT: &str = "FullTextOptions ";

/// The words for what an index doesn't have.
const NONE: &str = "none";

/// The field of the identity with the filter columns.
const FILTER_COLUMNS: &str = "filter columns";

/// The separator of names and columns in a field.
const SEPARATOR: &str = ", ";

/// The beginning of the first line.
const FORMAT: &str = "annulus-index-snapshot 1 ";

/// The contents of the file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    /// The number of the generation.
    pub generation: u64,
    /// The position, milliseconds since the epoch. Everything that the log named before it is in
    /// the index.
    pub position_ms: u64,
    /// The time to live of rows of the log, seconds; 0: for ever.
    pub log_ttl_s: u64,
    /// The identity of the index, as text by field. A difference in any field means another index.
    pub identity: BTreeMap<String, String>,
}

impl Manifest {
    /// The position in the log, since the epoch.
    pub(crate) fn position(&self) -> Duration {
        Duration::from_millis(self.position_ms)
    }

    /// When the index's table was last truncated, milliseconds since the epoch.
    pub(crate) fn truncated_ms(&self) -> Option<i64> {
        self.identity.get(TRUNCATED)?.parse().ok()
    }

    /// The class of the index's structure, which has written the other files.
    pub(crate) fn class(&self) -> StructureClass {
        let options = self.identity.get(OPTIONS);
        match options.is_some_and(|options| options.starts_with(FULL_TEXT)) {
            true => StructureClass::FullText,
            false => StructureClass::Vector,
        }
    }

    /// Whether the snapshot is of the table with this id. A table that is dropped and made again
    /// has another.
    pub(crate) fn is_of_table(&self, id: Uuid) -> bool {
        self.identity.get(TABLE_ID) == Some(&id.to_string())
    }

    /// Reads the manifest of a directory. `None` if there is no file.
    pub(crate) fn read(directory: &Path) -> Result<Option<Manifest>, PersistenceError> {
        let path = directory.join(CURRENT);
        let bytes = match files::step(FileStep::Read, &path).and_then(|()| fs::read(&path)) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(PersistenceError::io("read", &path)(error)),
        };
        Manifest::decode(&bytes)
            .map(Some)
            .map_err(|what| PersistenceError::damaged(&path, 0, what))
    }

    /// Replaces the manifest of a directory, and waits until it is on the disk.
    pub(crate) fn publish(&self, directory: &Path) -> Result<(), PersistenceError> {
        let (path, new) = (directory.join(CURRENT), directory.join("current.new"));
        let written = files::step(FileStep::Write, &new).and_then(|()| {
            let mut file = File::create(&new)?;
            file.write_all(&self.encode())?;
            files::sync(&file, &new)
        });
        written.map_err(PersistenceError::io("write", &new))?;
        files::step(FileStep::Replace, &path)
            .and_then(|()| fs::rename(&new, &path))
            .map_err(PersistenceError::io("replace", &path))?;
        let synced = File::open(directory).and_then(|file| files::sync(&file, directory));
        synced.map_err(PersistenceError::io("write", directory))
    }

    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut json = serde_json::to_string_pretty(self).expect("strings and numbers");
        json.push('\n');
        format!("{FORMAT}{:032x}\n{json}", xxh3_128(json.as_bytes())).into_bytes()
    }

    pub(crate) fn decode(bytes: &[u8]) -> Result<Manifest, &'static str> {
        let rest = bytes
            .strip_prefix(FORMAT.as_bytes())
            .ok_or("it is of another format, or of a version that this program does not know")?;
        let (digits, rest) = rest.split_at_checked(32).ok_or("the file ends")?;
        let json = rest
            .strip_prefix(b"\n")
            .ok_or("its first line is too long")?;
        if format!("{:032x}", xxh3_128(json)).as_bytes() != digits {
            return Err("its bytes have another checksum than when they were written");
        }
        serde_json::from_slice(json).map_err(|_| "it does not say what a snapshot has to say")
    }
}

/// The identity of an index as text by field. `log` is the id of the table that is its log.
pub(crate) fn words(identity: &IndexIdentity, log: Uuid) -> BTreeMap<String, String> {
    let IndexIdentity {
        name,
        table,
        truncated_ms,
        column,
        // It belongs to the column, which an index of a version always is on.
        column_kind: _,
        local_key,
        filter_columns,
        options,
        version,
        keys,
        range,
    } = identity;
    let none = || NONE.to_owned();
    let shown = [
        ("keyspace", name.keyspace.clone()),
        ("index", name.index.clone()),
        ("table", table.to_string()),
        (TABLE_ID, table.id.to_string()),
        (
            TRUNCATED,
            truncated_ms.map_or_else(none, |ms| ms.to_string()),
        ),
        (COLUMN, column.clone()),
        (OPTIONS, options_in_words(options)),
        (
            VERSION,
            version.map_or_else(none, |version| version.to_string()),
        ),
        (KEYS, keys_in_words(keys)),
        ("token range", format!("{} to {}", range.start, range.end)),
        (LOG_ID, log.to_string()),
    ];
    // Snapshots of indexes on a single column have no such fields.
    let key = local_key.iter().map(|name| Identifier(name).to_string());
    let filters = filter_columns.iter().map(filter_in_words);
    let others = [
        (LOCAL_KEY, key.collect::<Vec<_>>()),
        (FILTER_COLUMNS, filters.collect()),
    ];
    let others = others.into_iter().filter(|(_, words)| !words.is_empty());
    let shown = shown
        .into_iter()
        .chain(others.map(|(field, words)| (field, words.join(SEPARATOR))));
    shown
        .map(|(field, value)| (field.to_owned(), value))
        .collect()
}

fn filter_in_words(column: &FilterColumn) -> String {
    let FilterColumn {
        name,
        cql_type,
        is_static,
    } = column;
    let kind = if *is_static { " static" } else { "" };
    format!("{} {cql_type}{kind}", Identifier(name))
}

fn options_in_words(options: &StructureOptions) -> String {
    match options {
        StructureOptions::Vector(options) => vector_options_in_words(options),
        StructureOptions::FullText(options) => full_text_options_in_words(*options),
    }
}

fn full_text_options_in_words(options: FullTextOptions) -> String {
    let FullTextOptions {
        analyzer,
        positions,
    } = options;
    format!(
        "{FULL_TEXT}{{ analyzer: {}, positions: {positions} }}",
        analyzer.name()
    )
}

/// The options as all snapshots so far write them. Nothing in a snapshot depends on whether the
/// schema gives the width of searches.
fn vector_options_in_words(options: &VectorOptions) -> String {
    let VectorOptions {
        dimensions,
        similarity,
        quantization,
        maximum_node_connections,
        construction_beam_width,
        search_beam_width: _,
    } = options;
    let search_beam_width = options.reported_search_beam_width();
    format!(
        "VectorOptions {{ dimensions: {dimensions}, similarity: {similarity:?}, quantization: {quantization:?}, \
         maximum_node_connections: {maximum_node_connections}, construction_beam_width: {construction_beam_width}, \
         search_beam_width: {search_beam_width} }}"
    )
}

/// The primary key as all snapshots so far write it. Its words must never change, or every index is
/// built again by the first start of a new version.
fn keys_in_words(keys: &KeySchema) -> String {
    let columns = |columns: &[KeyColumn]| {
        let columns = columns.iter().map(|KeyColumn { name, cql_type }| {
            let typ = match cql_type {
                CqlType::Bigint => "BigInt".to_owned(),
                CqlType::Smallint => "SmallInt".to_owned(),
                CqlType::Tinyint => "TinyInt".to_owned(),
                other => format!("{other:?}"),
            };
            format!("KeyColumn {{ name: {name:?}, typ: {typ} }}")
        });
        columns.collect::<Vec<_>>().join(", ")
    };
    let (partition, clustering) = (columns(&keys.partition), columns(&keys.clustering));
    format!("KeySchema {{ partition: [{partition}], clustering: [{clustering}] }}")
}

/// The identity that an index was saved with, if that has some of the columns of `now` and differs
/// in nothing else. `saved` has the present names. `log` is the id of the table that is its log.
pub(crate) fn with_fewer_columns(
    saved: &BTreeMap<String, String>,
    now: &IndexIdentity,
    log: Uuid,
) -> Option<IndexIdentity> {
    let mut rest = saved.get(FILTER_COLUMNS).map_or("", String::as_str);
    let mut kept = Vec::new();
    while !rest.is_empty() {
        let next = now.filter_columns.iter().find_map(|column| {
            let rest = rest.strip_prefix(&filter_in_words(column))?;
            let after = rest.strip_prefix(SEPARATOR);
            let after = after.or(rest.is_empty().then_some(rest))?;
            Some((column.clone(), after))
        });
        let (column, after) = next?;
        kept.push(column);
        rest = after;
    }
    let former = IndexIdentity {
        filter_columns: kept,
        ..now.clone()
    };
    (former != *now && words(&former, log) == *saved).then_some(former)
}

/// The identity that an index was saved with, in the words that it has with the names of columns
/// that `now` has, if the two are of the same version and the same types of key. Then only the
/// names of key columns can differ, as a key column may be renamed, which leaves the rows as they
/// are.
pub(crate) fn with_present_names(
    saved: BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let is_same = |field: &str| saved.contains_key(field) && saved.get(field) == now.get(field);
    let types = |words: &BTreeMap<String, String>| words.get(KEYS).and_then(|keys| nameless(keys));
    let is_renamed = is_same(VERSION)
        && now[VERSION] != NONE
        && is_same(TABLE_ID)
        && types(&saved).is_some_and(|saved| Some(saved) == types(now));
    if !is_renamed {
        return saved;
    }
    // The indexed column of an index on texts may be one of the key.
    let named = [KEYS, LOCAL_KEY, COLUMN];
    let saved = saved.into_iter();
    let others = saved.filter(|(field, _)| !named.contains(&field.as_str()));
    let named = named
        .into_iter()
        .filter_map(|field| now.get_key_value(field));
    let named = named.map(|(field, words)| (field.clone(), words.clone()));
    others.chain(named).collect()
}

/// The words of a primary key without the names of its columns; `None` if they are no such words.
fn nameless(keys: &str) -> Option<String> {
    const NAME: &str = "name: \"";
    let mut out = String::new();
    let mut rest = keys;
    while let Some((before, name)) = rest.split_once(NAME) {
        out.push_str(before);
        let mut is_escaped = false;
        let end = name.find(|c| {
            let ends = c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            ends
        })?;
        rest = &name[end + 1..];
    }
    out.push_str(rest);
    Some(out)
}

/// The first difference between two identities: the field, the saved value, and the present value.
pub(crate) fn difference(
    saved: &BTreeMap<String, String>,
    now: &BTreeMap<String, String>,
) -> Option<(String, String, String)> {
    let of = |words: &BTreeMap<String, String>, field: &String| {
        words
            .get(field)
            .cloned()
            .unwrap_or_else(|| "unknown".to_owned())
    };
    saved
        .keys()
        .chain(now.keys())
        .map(|field| (field.clone(), of(saved, field), of(now, field)))
        .find(|(_, saved, now)| saved != now)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::indexes::tests::identity;

    /// The id of the table that is the log.
    const LOG: Uuid = Uuid::from_u128(5);

    fn manifest() -> Manifest {
        Manifest {
            generation: 7,
            position_ms: 1_700_000_000_123,
            log_ttl_s: 86_400,
            identity: words(&identity("idx"), LOG),
        }
    }

    #[test]
    fn every_byte_counts() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(Manifest::read(directory.path()).unwrap(), None);
        manifest().publish(directory.path()).unwrap();
        assert_eq!(Manifest::read(directory.path()).unwrap(), Some(manifest()));
        assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 1);
        let sound = manifest().encode();
        for at in 0..sound.len() {
            let mut bytes = sound.clone();
            bytes[at] ^= 4;
            assert!(Manifest::decode(&bytes).is_err(), "byte {at}");
            assert!(Manifest::decode(&sound[..at]).is_err(), "cut at {at}");
        }
    }

    #[test]
    fn a_manifest_names_the_class_of_its_structure() {
        let mut identity = identity("idx");
        let class = |identity: &IndexIdentity| {
            let identity = words(identity, LOG);
            let manifest = Manifest {
                identity,
                ..manifest()
            };
            manifest.class()
        };
        assert_eq!(class(&identity), StructureClass::Vector);
        identity.options = StructureOptions::FullText(FullTextOptions::default());
        assert_eq!(class(&identity), StructureClass::FullText);
        let options = "FullTextOptions { analyzer: standard, positions: true }";
        assert_eq!(words(&identity, LOG)["options"], options);
    }

    #[test]
    fn the_words_of_earlier_snapshots_are_kept() {
        let mut identity = identity("idx");
        let saved = "VectorOptions { dimensions: 2, similarity: Euclidean, quantization: F32, maximum_node_connections: 16, \
                     construction_beam_width: 128, search_beam_width: 64 }";
        for width in [None, Some(64)] {
            identity.options.vector().search_beam_width = width;
            assert_eq!(words(&identity, LOG)["options"], saved);
        }
        identity.options.vector().search_beam_width = Some(65);
        assert_ne!(words(&identity, LOG)["options"], saved);
        let column = |name: &str, cql_type| KeyColumn {
            name: name.to_owned(),
            cql_type,
        };
        identity.keys = KeySchema {
            partition: vec![
                column("a", CqlType::Bigint),
                column("b\"", CqlType::Timeuuid),
            ],
            clustering: vec![
                column("c", CqlType::Smallint),
                column("d", CqlType::Tinyint),
            ],
        };
        let saved = "KeySchema { partition: [KeyColumn { name: \"a\", typ: BigInt }, KeyColumn { name: \"b\\\"\", typ: Timeuuid }], \
                     clustering: [KeyColumn { name: \"c\", typ: SmallInt }, KeyColumn { name: \"d\", typ: TinyInt }] }";
        assert_eq!(words(&identity, LOG)["keys"], saved);
    }

    /// A local index with two filter columns.
    fn filtered() -> IndexIdentity {
        let column = |name: &str, cql_type, is_static| FilterColumn {
            name: name.to_owned(),
            cql_type,
            is_static,
        };
        let mut filtered = identity("idx");
        filtered.local_key = vec!["k".to_owned(), "P 1".to_owned()];
        filtered.filter_columns = vec![
            column("P 1", CqlType::Int, false),
            column(
                "m",
                CqlType::Map {
                    key: Box::new(CqlType::Text),
                    value: Box::new(CqlType::Varint),
                    frozen: false,
                },
                true,
            ),
        ];
        filtered
    }

    #[test]
    fn an_index_that_kept_fewer_columns_is_known_by_its_words() {
        let filtered = filtered();
        let shown = words(&filtered, LOG);
        for kept in [&[][..], &[0], &[1]] {
            let columns = kept.iter().map(|at| filtered.filter_columns[*at].clone());
            let mut former = IndexIdentity {
                filter_columns: columns.collect(),
                ..filtered.clone()
            };
            let saved = words(&former, LOG);
            let found = with_fewer_columns(&saved, &filtered, LOG);
            assert_eq!(found.as_ref(), Some(&former));
            assert_eq!(with_fewer_columns(&shown, &former, LOG), None, "more");
            former.truncated_ms = Some(12);
            let saved = words(&former, LOG);
            assert_eq!(with_fewer_columns(&saved, &filtered, LOG), None);
        }
        assert_eq!(with_fewer_columns(&shown, &filtered, LOG), None, "the same");
    }

    #[test]
    fn the_columns_of_filters_are_part_of_the_identity() {
        let plain = words(&identity("idx"), LOG);
        let fields: Vec<&str> = plain.keys().map(String::as_str).collect();
        assert_eq!(
            fields,
            [
                "column",
                "index",
                "keys",
                "keyspace",
                "log id",
                "options",
                "table",
                "table id",
                "time of truncation",
                "token range",
                "version"
            ]
        );
        let mut filtered = filtered();
        let shown = words(&filtered, LOG);
        assert_eq!(shown["local key"], "k, \"P 1\"");
        assert_eq!(
            shown["filter columns"],
            "\"P 1\" int, m map<text, varint> static"
        );
        assert_eq!(shown.len(), plain.len() + 2);
        assert_eq!(difference(&plain, &plain), None);
        let (field, saved, now) = difference(&plain, &shown).unwrap();
        assert_eq!(field, "filter columns");
        assert_eq!((&*saved, now), ("unknown", shown["filter columns"].clone()));
        filtered.filter_columns[0].cql_type = CqlType::Bigint;
        assert!(difference(&shown, &words(&filtered, LOG)).is_some());
    }

    #[test]
    fn other_names_of_key_columns_are_no_difference() {
        let column = |name: &str, cql_type| KeyColumn {
            name: name.to_owned(),
            cql_type,
        };
        let mut before = filtered();
        before.keys = KeySchema {
            partition: vec![
                column("k", CqlType::Int),
                column("a\", typ: \\", CqlType::Text),
            ],
            clustering: vec![column("c", CqlType::Int)],
        };
        let saved = words(&before, LOG);
        let mut after = before.clone();
        after.keys.partition[0].name = "\"x\"".to_owned();
        after.keys.partition[1].name = "c".to_owned();
        after.keys.clustering[0].name = "a".to_owned();
        after.local_key[0] = "\"x\"".to_owned();
        let now = words(&after, LOG);
        assert_ne!(saved, now);
        assert_eq!(with_present_names(saved.clone(), &now), now);
        assert_eq!(with_present_names(now.clone(), &saved), saved);
        let edits: [fn(&mut IndexIdentity); 4] = [
            |index| index.version = Some(Uuid::from_u128(77)),
            |index| index.version = None,
            |index| index.table.id = Uuid::from_u128(78),
            |index| index.keys.partition[0].cql_type = CqlType::Bigint,
        ];
        for edit in edits {
            let mut other = after.clone();
            edit(&mut other);
            let other = words(&other, LOG);
            assert_eq!(with_present_names(saved.clone(), &other), saved);
        }
        // What differs in addition to the names still differs.
        after.truncated_ms = Some(12);
        let now = words(&after, LOG);
        let renamed = with_present_names(saved, &now);
        let (field, ..) = difference(&renamed, &now).unwrap();
        assert_eq!(field, TRUNCATED);
    }

    #[test]
    fn a_difference_in_anything_is_named() {
        let now = words(&identity("idx"), LOG);
        assert_eq!(difference(&now, &now), None);
        let mut truncated = identity("idx");
        truncated.truncated_ms = Some(12);
        assert_eq!(
            difference(&now, &words(&truncated, LOG)),
            Some(("time of truncation".into(), "none".into(), "12".into()))
        );
        let other_log = words(&identity("idx"), Uuid::from_u128(6));
        let (field, ..) = difference(&other_log, &now).unwrap();
        assert_eq!(field, LOG_ID);
        let manifest = Manifest {
            identity: words(&truncated, LOG),
            ..manifest()
        };
        assert_eq!(manifest.truncated_ms(), Some(12));
        assert!(manifest.is_of_table(truncated.table.id));
        assert!(!manifest.is_of_table(Uuid::from_u128(99)));
        for missing in ["version", LOG_ID] {
            let mut fewer = now.clone();
            fewer.remove(missing);
            let (field, saved, _) = difference(&fewer, &now).unwrap();
            assert_eq!((&*field, &*saved), (missing, "unknown"));
        }
    }
}
