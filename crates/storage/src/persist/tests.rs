use cql::secret::Secret;
use schema::{
    CdcLog, CdcOptions, Column, ColumnId, ColumnKind, DeltaMode, DroppedColumn, ImageMode,
    IndexedPart, Permission, PermissionSet, RING_TOKENS, Resource, RowTtl, SearchIndexMetadata,
    SecondaryIndex, StreamGeneration,
};
use uuid::Uuid;
use value::{CqlType, UserType, token::Partitioner};

use super::*;

fn boxed(cql_type: CqlType) -> Box<CqlType> {
    Box::new(cql_type)
}

fn types() -> Vec<CqlType> {
    let map = |frozen| CqlType::Map {
        key: boxed(CqlType::Text),
        value: boxed(CqlType::List {
            element: boxed(CqlType::Varint),
            frozen: true,
        }),
        frozen,
    };
    let set = CqlType::Set {
        element: boxed(CqlType::Tuple(vec![CqlType::Inet, CqlType::Date])),
        frozen: false,
    };
    let vector = |element, dimensions| CqlType::Vector {
        element: boxed(element),
        dimensions,
    };
    vec![
        CqlType::Ascii,
        CqlType::Bigint,
        CqlType::Blob,
        CqlType::Boolean,
        CqlType::Counter,
        CqlType::Date,
        CqlType::Decimal,
        CqlType::Double,
        CqlType::Duration,
        CqlType::Float,
        CqlType::Int,
        CqlType::Smallint,
        CqlType::Time,
        CqlType::Timestamp,
        CqlType::Timeuuid,
        CqlType::Tinyint,
        CqlType::Uuid,
        map(true),
        map(false),
        set,
        vector(CqlType::Float, 16_000),
        vector(vector(CqlType::Text, 2), 3),
    ]
}

/// A catalog that uses every field.
#[expect(clippy::too_many_lines, reason = "one value that sets every field")]
fn catalog() -> Catalog {
    let kinds = [
        ColumnKind::PartitionKey { position: 0 },
        ColumnKind::Clustering {
            position: 0,
            descending: true,
        },
        ColumnKind::Static,
    ];
    let columns = (0..).zip(types()).map(|(id, cql_type)| Column {
        id: ColumnId(id),
        name: format!("column \"{id}\""),
        kind: *kinds.get(id as usize).unwrap_or(&ColumnKind::Regular),
        cql_type,
    });
    let options = CdcOptions {
        enabled: true,
        preimage: ImageMode::Full,
        postimage: true,
        delta: DeltaMode::Keys,
        ttl_s: 7,
    };
    let streams = |tag: u8| StreamGeneration {
        since_ms: i64::from(tag),
        streams: vec![Bytes::from(vec![tag; 16]), Bytes::from(vec![0; 16])],
    };
    let index = SearchIndexMetadata {
        name: "i".to_owned(),
        target: "{\"pk\": []}".to_owned(),
        column: "v".to_owned(),
        local_key: vec!["p".to_owned(), "q".to_owned()],
        filter_columns: vec!["f".to_owned()],
        options: BTreeMap::from([("similarity_function".to_owned(), "COSINE".to_owned())]),
        class_name: "vector_index".to_owned(),
        version: Uuid::from_u128(5),
    };
    let dropped = DroppedColumn {
        id: Some(ColumnId(8)),
        cql_type: CqlType::Text,
        is_static: true,
        dropped_at_micros: -3,
    };
    let (types, of_user_type) = user_types();
    let columns = columns.chain([of_user_type]);
    let table = Table {
        id: TableId(Uuid::from_u128(1)),
        keyspace: "ks".to_owned(),
        name: "Tablé".to_owned(),
        columns: columns.collect(),
        next_column: ColumnId(99),
        dropped_columns: BTreeMap::from([("old".to_owned(), dropped)]),
        partitioner: Partitioner::Cdc,
        default_ttl_s: 1,
        row_ttl: Some(RowTtl {
            column: ColumnId(11),
            version: Uuid::from_u128(12),
        }),
        gc_grace_s: 2,
        options: BTreeMap::from([("comment".to_owned(), "'it''s'".to_owned())]),
        indexes: BTreeMap::from([("i".to_owned(), Arc::new(index))]),
        secondary_indexes: secondary_indexes(),
        cdc: Some(options.clone()),
        log: Some(CdcLog {
            table: TableId(Uuid::from_u128(2)),
            options,
            streams: Some(streams(3)),
        }),
        log_of: Some(TableId(Uuid::from_u128(4))),
        truncated_at_ms: Some(6),
    };
    let keyspace = Keyspace {
        name: "ks".to_owned(),
        replication: BTreeMap::from([("class".to_owned(), "SimpleStrategy".to_owned())]),
        durable_writes: false,
        tablets: true,
        types: BTreeMap::from(types.map(|known| (known.name.clone(), known))).into(),
        tables: BTreeMap::from([(table.name.clone(), Arc::new(table))]),
    };
    Catalog {
        version: Uuid::from_u128(8),
        host_id: Uuid::from_u128(9),
        cluster_name: "cluster".to_owned(),
        created_at_ms: 10,
        vnode_streams: streams(RING_TOKENS[0].0 as u8),
        keyspaces: BTreeMap::from([("ks".to_owned(), Arc::new(keyspace))]),
        roles: BTreeMap::from([("The \"role\"".to_owned(), Arc::new(role()))]).into(),
    }
}

fn role() -> Role {
    let table = Resource::Table("ks".to_owned(), "t".to_owned());
    Role {
        id: Uuid::from_u128(7),
        is_superuser: true,
        can_login: true,
        salted_hash: Some(Secret::new("$2a$10$hash".to_owned())),
        member_of: ["another".to_owned()].into(),
        grants: BTreeMap::from([
            (
                table,
                [Permission::Select, Permission::Modify]
                    .into_iter()
                    .collect(),
            ),
            (
                Resource::AllRoles,
                [Permission::Describe].into_iter().collect(),
            ),
        ]),
        identities: ["spiffe://x".to_owned()].into(),
    }
}

/// Two types, and a column of them. By name, one comes before the one that it uses.
fn user_types() -> ([Arc<UserType>; 2], Column) {
    let inner = user_type("z", CqlType::Text);
    let list = CqlType::List {
        element: boxed(frozen(&inner)),
        frozen: false,
    };
    let outer = user_type("The \"outer\"", list);
    let column = Column {
        id: ColumnId(98),
        name: "of user type".to_owned(),
        kind: ColumnKind::Regular,
        cql_type: CqlType::Tuple(vec![frozen(&outer)]),
    };
    ([inner, outer], column)
}

fn user_type(name: &str, field: CqlType) -> Arc<UserType> {
    Arc::new(UserType {
        keyspace: "ks".to_owned(),
        name: name.to_owned(),
        field_names: vec!["The field".to_owned()],
        field_types: vec![field],
    })
}

fn frozen(definition: &Arc<UserType>) -> CqlType {
    CqlType::UserType {
        definition: definition.clone(),
        frozen: true,
    }
}

/// An index on each part of a column.
fn secondary_indexes() -> BTreeMap<String, Arc<SecondaryIndex>> {
    let parts = [
        IndexedPart::Value,
        IndexedPart::Full,
        IndexedPart::Values,
        IndexedPart::Keys,
        IndexedPart::Entries,
    ];
    let indexes = parts.into_iter().enumerate().map(|(at, part)| {
        let index = SecondaryIndex {
            name: format!("by {part:?}"),
            column: ColumnId(at as u32),
            part,
            is_local: false,
            class_name: Some("sai".to_owned()),
            options: BTreeMap::from([("case_sensitive".to_owned(), "false".to_owned())]),
            version: Uuid::from_u128(100 + at as u128),
        };
        (index.name.clone(), Arc::new(index))
    });
    indexes.collect()
}

/// Keys and values as they are stored on the disk.
type Disk = BTreeMap<Bytes, Bytes>;

fn write(disk: &mut Disk, changes: CatalogWrites) {
    for (key, value) in changes {
        match value {
            Some(value) => drop(disk.insert(key, value)),
            None => drop(disk.remove(&key)),
        }
    }
}

fn read(disk: &Disk) -> LoadedCatalog {
    let entries = disk
        .iter()
        .map(|(key, value)| Ok((key.clone(), value.clone())));
    load(entries).unwrap().unwrap()
}

fn check(disk: &Disk, catalog: &Catalog, generations: &TableGenerations) {
    let loaded = read(disk);
    assert_eq!(format!("{:?}", loaded.catalog), format!("{catalog:?}"));
    // A hash is no part of its Debug form.
    assert_eq!(loaded.catalog.roles, catalog.roles);
    assert_eq!(&loaded.generations, generations);
    assert!(loaded.conversion.is_empty());
}

#[test]
fn a_catalog_comes_back_as_it_was() {
    let catalog = catalog();
    let generations = TableGenerations::from([(TableId(Uuid::from_u128(1)), 12)]);
    let mut disk = Disk::new();
    write(&mut disk, changes(None, (&catalog, &generations)));
    check(&disk, &catalog, &generations);
}

#[test]
fn an_index_of_a_column_alone_is_kept_as_earlier_versions_did() {
    let mut catalog = catalog();
    let keyspace = Arc::make_mut(catalog.keyspaces.get_mut("ks").unwrap());
    let table = Arc::make_mut(keyspace.tables.get_mut("Tablé").unwrap());
    let index = Arc::make_mut(table.indexes.get_mut("i").unwrap());
    index.local_key.clear();
    index.filter_columns.clear();
    let mut disk = Disk::new();
    write(
        &mut disk,
        changes(None, (&catalog, &TableGenerations::new())),
    );
    for record in disk.values() {
        let record = String::from_utf8_lossy(record);
        assert!(!record.contains("local_key") && !record.contains("filter_columns"));
    }
    check(&disk, &catalog, &TableGenerations::new());
}

#[test]
fn a_full_text_index_keeps_its_class() {
    let mut catalog = catalog();
    let keyspace = Arc::make_mut(catalog.keyspaces.get_mut("ks").unwrap());
    let table = Arc::make_mut(keyspace.tables.get_mut("Tablé").unwrap());
    let index = Arc::make_mut(table.indexes.get_mut("i").unwrap());
    "fulltext_index".clone_into(&mut index.class_name);
    index.options = BTreeMap::from([("analyzer".to_owned(), "german".to_owned())]);
    assert!(index.is_full_text());
    let mut disk = Disk::new();
    write(
        &mut disk,
        changes(None, (&catalog, &TableGenerations::new())),
    );
    check(&disk, &catalog, &TableGenerations::new());
}

#[test]
fn a_change_writes_what_it_changes() {
    let (mut old, mut generations) = (catalog(), TableGenerations::new());
    let sample = Table::clone(&old.keyspaces["ks"].tables["Tablé"]);
    let keyspace = Arc::make_mut(old.keyspaces.get_mut("ks").unwrap());
    for number in 0..100 {
        let mut table = sample.clone();
        table.id = TableId(Uuid::from_u128(100 + number));
        table.name = format!("t{number}");
        keyspace.tables.insert(table.name.clone(), Arc::new(table));
    }
    let mut disk = Disk::new();
    write(&mut disk, changes(None, (&old, &generations)));
    let mut step = |edit: &dyn Fn(&mut Catalog, &mut TableGenerations), expected: usize| {
        let before = (old.clone(), generations.clone());
        edit(&mut old, &mut generations);
        let changes = changes(Some((&before.0, &before.1)), (&old, &generations));
        assert_eq!(changes.len(), 1 + expected, "besides the head");
        write(&mut disk, changes);
        check(&disk, &old, &generations);
    };
    fn ks(catalog: &mut Catalog) -> &mut Keyspace {
        Arc::make_mut(catalog.keyspaces.get_mut("ks").unwrap())
    }
    step(&|_, _| {}, 0);
    step(&|catalog, _| drop(ks(catalog).tables.remove("t7")), 1);
    step(
        &|catalog, _| {
            let table = ks(catalog).tables.get_mut("t8").unwrap();
            Arc::make_mut(table).gc_grace_s = 77;
        },
        1,
    );
    step(
        &|_, generations| generations.extend([(TableId(Uuid::from_u128(109)), 3)]),
        1,
    );
    step(&|catalog, _| ks(catalog).durable_writes = true, 1);
    step(
        &|catalog, _| {
            let mut other = Keyspace::clone(&catalog.keyspaces["ks"]);
            other.name = "other".to_owned();
            other.tables.clear();
            other.types.clear();
            catalog
                .keyspaces
                .insert("other".to_owned(), Arc::new(other));
        },
        1,
    );
    step(&|catalog, _| drop(catalog.keyspaces.remove("other")), 1);
}

#[test]
fn a_catalog_of_format_1_is_converted() {
    // Version 0.1.0 wrote this, with other streams.
    let old = br#"{"format":1,"version":"00000000-0000-0000-0000-000000000008",
        "host_id":"00000000-0000-0000-0000-000000000009","cluster_name":"cluster","created_at_ms":10,
        "vnode_streams":{"since_ms":0,"streams":[[0,1]]},"keyspaces":[{"name":"ks","replication":{},
        "durable_writes":true,"tablets":false,"tables":[{"id":"00000000-0000-0000-0000-000000000001",
        "name":"t","columns":[{"id":0,"name":"p","kind":{"partition_key":{"position":0}},"cql_type":"int"}],
        "next_column":1,"dropped_columns":{"d":{"cql_type":"text","is_static":false,"dropped_at_micros":5}},
        "cdc_partitioner":false,"default_ttl_s":0,"gc_grace_s":864000,"options":{},"indexes":[],"cdc":null,
        "log":null,"log_of":null,"truncated_at_ms":null}]}],
        "generations":{"00000000-0000-0000-0000-000000000001":2}}"#;
    let mut disk = Disk::from([(Bytes::from_static(HEAD), Bytes::from_static(old))]);
    let loaded = read(&disk);
    let table = &loaded.catalog.keyspaces["ks"].tables["t"];
    assert_eq!(loaded.generations[&table.id], 2);
    let mut names = HashMap::new();
    disk.iter()
        .for_each(|(key, value)| note_names(key, value, &mut names));
    assert_eq!(names[&table.id], "ks.t");

    write(&mut disk, loaded.conversion);
    check(&disk, &loaded.catalog, &loaded.generations);
    names.clear();
    disk.iter()
        .for_each(|(key, value)| note_names(key, value, &mut names));
    assert_eq!(names[&table.id], "ks.t");
}

#[test]
fn a_newer_format_is_refused_though_it_can_not_be_read() {
    let read = |head: &'static [u8]| {
        load([Ok((Bytes::from_static(HEAD), Bytes::from_static(head)))].into_iter()).err()
    };
    let newer = read(br#"{"format": 6, "what": "unknown"}"#);
    assert!(matches!(newer, Some(StorageError::NewerFormat(_))));
    for damaged in [&b""[..], b"{}", br#"{"format": 1}"#, br#"{"format": 2}"#] {
        assert!(matches!(read(damaged), Some(StorageError::Corrupt(_))));
    }
}

#[test]
fn a_catalog_has_the_format_of_the_least_version_that_knows_all_of_it() {
    let format = |catalog: &Catalog| {
        let changes = changes(None, (catalog, &TableGenerations::new()));
        let head = changes.iter().find(|(key, _)| key == HEAD);
        let head = head.and_then(|(_, value)| value.clone()).unwrap();
        parse::<FormatOnly>(&head).unwrap().format
    };
    let mut with_roles = catalog();
    assert_eq!(format(&with_roles), 4);
    let keyspace = Arc::make_mut(with_roles.keyspaces.get_mut("ks").unwrap());
    Arc::make_mut(keyspace.tables.get_mut("Tablé").unwrap()).row_ttl = None;
    assert_eq!(format(&with_roles), 3);
    let without = Catalog {
        roles: Default::default(),
        ..with_roles.clone()
    };
    assert_eq!(format(&without), 2);
    let generations = TableGenerations::new();
    let mut disk = Disk::new();
    write(&mut disk, changes(None, (&with_roles, &generations)));
    write(
        &mut disk,
        changes(Some((&with_roles, &generations)), (&without, &generations)),
    );
    check(&disk, &without, &generations);
}

/// How many types and grants there are, so that each has a record of its own.
const MANY: usize = 200;

fn edit_keyspace(catalog: &mut Catalog, edit: impl Fn(&mut Keyspace)) {
    edit(Arc::make_mut(catalog.keyspaces.get_mut("ks").unwrap()));
}

fn edit_role(catalog: &mut Catalog, edit: impl Fn(&mut Role)) {
    let role = catalog.roles.get_mut("The \"role\"").unwrap();
    edit(Arc::make_mut(role));
}

fn grant(number: usize) -> Resource {
    Resource::Role(format!("r{number}"))
}

/// A catalog with many types in a keyspace and many grants of a role.
fn catalog_of_many(granted: PermissionSet) -> Catalog {
    let mut catalog = catalog();
    edit_keyspace(&mut catalog, |keyspace| {
        for number in 0..MANY {
            // By name, each comes before the one that it uses.
            let used = match number {
                0 => CqlType::Int,
                _ => frozen(&keyspace.types[&format!("t{:03}", MANY - number)]),
            };
            let definition = user_type(&format!("t{:03}", MANY - number - 1), used);
            keyspace.types.insert(definition.name.clone(), definition);
        }
    });
    edit_role(&mut catalog, |role| {
        role.grants
            .extend((0..MANY).map(|number| (grant(number), granted)));
    });
    catalog
}

#[test]
fn one_of_many_types_or_grants_is_written_alone() {
    let mut old = catalog_of_many(alter_only());
    let generations = TableGenerations::new();
    let mut disk = Disk::new();
    write(&mut disk, changes(None, (&old, &generations)));
    check(&disk, &old, &generations);
    let head = parse::<FormatOnly>(&disk[HEAD]).unwrap();
    assert_eq!(head.format, FORMAT_WITH_PARTS_APART);
    let mut step = |edit: &dyn Fn(&mut Catalog), expected: usize| {
        let before = old.clone();
        edit(&mut old);
        let changes = changes(Some((&before, &generations)), (&old, &generations));
        assert_eq!(changes.len(), 1 + expected, "besides the head");
        write(&mut disk, changes);
        check(&disk, &old, &generations);
    };
    let of_role = |edit: fn(&mut Role)| move |catalog: &mut Catalog| edit_role(catalog, edit);
    let one_more = |keyspace: &mut Keyspace| {
        let one = user_type("one more", CqlType::Int);
        keyspace.types.insert(one.name.clone(), one);
    };
    step(&|catalog| edit_keyspace(catalog, one_more), 1);
    let none_more = |keyspace: &mut Keyspace| drop(keyspace.types.remove("one more"));
    step(&|catalog| edit_keyspace(catalog, none_more), 1);
    let granted = |role: &mut Role| {
        role.grants.insert(grant(MANY), alter_only());
    };
    step(&of_role(granted), 1);
    step(
        &of_role(|role| {
            role.grants.remove(&grant(7));
        }),
        1,
    );
    step(&of_role(|role| role.can_login = false), 1);
    // Where few are left, they are in the record of the whole again.
    let few = |role: &mut Role| role.grants.retain(|_, granted| *granted != alter_only());
    step(&of_role(few), 1 + MANY + 2);
    step(&|catalog| drop(catalog.roles.remove("The \"role\"")), 1);
}

fn alter_only() -> PermissionSet {
    [Permission::Alter].into_iter().collect()
}
