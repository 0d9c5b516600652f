//! Makes the corpora of the fuzz targets: from the data directory that tests of upgrades read, from
//! frames that drivers sent, from statements of the docs, and a few by hand.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use bytes::{Bytes, BytesMut};
use cql::error::CqlError;
use cql::wire::{
    ColumnSpec, ColumnsMetadata, Compression, PreparedResponse, ProtocolVersion, Response,
    ResponseContext, RowsEncoder, SchemaChange, SchemaChangeKind, SchemaTarget, ServerEvent,
};

use super::fuzz;

/// The most bytes of a stretch of a journal.
const JOURNAL_BYTES: usize = 8_000;
const RECORDS: usize = 24;
const STATEMENTS: usize = 28;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn put(target: &str, name: &str, content: &[u8]) {
    let folder = fuzz().join("corpus").join(target);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(name), content).unwrap();
}

#[test]
#[ignore = "writes the corpora, which are in the tree"]
fn making() {
    let directory = tempfile::tempdir().unwrap();
    let archive = root().join("crates/annulus/tests/fixtures/0.1.0/data.tar.gz");
    let mut unpack = Command::new("tar");
    unpack
        .arg("-xzf")
        .arg(archive)
        .arg("-C")
        .arg(directory.path());
    assert!(unpack.status().unwrap().success());
    let data = directory.path().join("data");
    snapshots(&data);
    storage(&fs::read(data.join("db/0.jnl")).unwrap());
    requests();
    responses();
    statements();
    searches();
}

/// The files of all snapshots, and a file of rows with frames of every kind.
fn snapshots(data: &Path) {
    for entry in fs::read_dir(data.join("indexes/snapshots")).unwrap() {
        let place = entry.unwrap().path();
        let Ok(current) = fs::read(place.join("current")) else {
            continue;
        };
        let folder = place.file_name().unwrap().to_str().unwrap();
        let name = folder.split('-').next().unwrap();
        put("manifest", name, &current);
        let generations = fs::read_dir(&place)
            .unwrap()
            .map(|entry| entry.unwrap().path());
        for generation in generations.filter(|path| path.is_dir()) {
            put("rows", name, &fs::read(generation.join("rows")).unwrap());
            let mut files = fs::read(generation.join("graph")).unwrap();
            files.extend(fs::read(generation.join("vectors-00000")).unwrap_or_default());
            put("snapshot", name, &files);
        }
    }
    // The checksums are put right when it is read.
    let key = [4, 0, 0, 0, 7];
    let row = |id: u8, expires_s: u32| {
        let mut row = vec![id, 0, 0, 0];
        row.extend([9; 16]);
        row.extend(expires_s.to_le_bytes());
        row.extend((key.len() as u32).to_le_bytes());
        row.extend(key);
        row[29 + usize::from(id) % 4] = id;
        row
    };
    let unread = [&[5, 0, 0, 0][..], &key].concat();
    let frames: [(u8, Vec<u8>); 5] = [
        (1, [&[1][..], &[0; 15]].concat()),
        (2, [row(0, 0), row(1, 1_000), row(2, u32::MAX)].concat()),
        (3, vec![2, 0, 0, 0]),
        (4, unread),
        (0, Vec::new()),
    ];
    let mut file = Vec::new();
    for (kind, payload) in frames {
        file.extend((payload.len() as u32).to_le_bytes());
        file.extend([kind, 0, 0, 0]);
        file.extend(payload);
        file.extend([0; 16]);
    }
    put("rows", "every_kind", &file);
}

/// Stretches of a journal, and the records that it holds.
fn storage(journal: &[u8]) {
    let mut batches = vec![0];
    let mut records: Vec<&[u8]> = Vec::new();
    while let Some(end) = batch(journal, batches[batches.len() - 1], &mut records) {
        batches.push(end);
    }
    for (number, name) in ["begin", "early", "middle", "late"].into_iter().enumerate() {
        let first = batches.len() * number / 4;
        let start = batches[first];
        let mut ends = batches[first..].iter().rev();
        let end = ends.find(|end| **end - start <= JOURNAL_BYTES).unwrap();
        put("journals", name, &journal[start..*end]);
    }
    // One of each length, so that they differ.
    records.sort_by_key(|record| record.len());
    records.dedup_by_key(|record| record.len());
    let step = records.len().div_ceil(RECORDS);
    for record in records.iter().step_by(step) {
        put("record", &format!("of_{}_bytes", record.len()), record);
    }
}

/// Reads a batch at an offset as `storage::engine::journal` draws it. Returns its end.
fn batch<'a>(journal: &'a [u8], at: usize, records: &mut Vec<&'a [u8]>) -> Option<usize> {
    let [1, count @ ..] = *journal[at..].first_chunk::<5>()? else {
        return None;
    };
    let mut end = at + 13;
    for _ in 0..u32::from_le_bytes(count) {
        let item = &journal[end..];
        if item[0] == 4 {
            end += 9;
            continue;
        }
        let key = usize::from(u16::from_le_bytes([item[11], item[12]]));
        let stored = u32::from_le_bytes([item[17], item[18], item[19], item[20]]) as usize;
        let value = &item[21 + key..][..stored];
        // Rows have longer keys than the storage's own entries, and begin with their version.
        if key > 8 && (12..1_000).contains(&stored) && value[0] == 1 {
            records.push(value);
        }
        end += 21 + key + stored;
    }
    Some(end + 13)
}

/// The frames in the test of what drivers send.
fn requests() {
    let test = fs::read_to_string(root().join("crates/cql/tests/wire/drivers.rs")).unwrap();
    let quoted = test.split('"').skip(1).step_by(2);
    let is_frame = |text: &&str| text.starts_with("04") || text.starts_with("05");
    let frames = quoted.filter(|text| is_frame(text) && text.len() >= 18);
    for (number, hex) in frames.enumerate() {
        let pairs = hex.as_bytes().chunks(2);
        let bytes = pairs.map(|pair| u8::from_str_radix(str::from_utf8(pair).unwrap(), 16));
        if let Ok(bytes) = bytes.collect::<Result<Vec<u8>, _>>() {
            put("frames", &format!("request_{number:02}"), &bytes);
        }
    }
}

fn responses() {
    let column = |name: &str, cql_type: &str| ColumnSpec {
        keyspace: "shop".into(),
        table: "products".into(),
        name: name.into(),
        cql_type: cql::parser::parse_type(cql_type).unwrap(),
    };
    let metadata = ColumnsMetadata {
        columns: vec![
            column("id", "int"),
            column("tags", "map<text, frozen<list<int>>>"),
            column("v", "vector<float, 3>"),
        ],
    };
    let mut rows = RowsEncoder::new(&metadata, false);
    for id in 0..3_u8 {
        rows.cell(Some(&[0, 0, 0, id]));
        rows.cell(None);
        rows.cell(Some(&[id; 12]));
        rows.end_row();
    }
    let rows = rows.finish(Some(Bytes::from_static(b"page")));
    let responses = [
        ("rows", Response::Rows(rows)),
        (
            "prepared",
            Response::Prepared(PreparedResponse {
                id: Bytes::from_static(b"sixteen bytes id"),
                result_metadata_id: Some(Bytes::from_static(b"id of the columns")),
                bind: metadata.clone(),
                partition_key_indexes: vec![0],
                result: Some(metadata),
            }),
        ),
        ("error", Response::Error(CqlError::invalid("no such table"))),
        (
            "supported",
            Response::Supported(vec![("COMPRESSION".to_owned(), vec!["lz4".to_owned()])]),
        ),
        (
            "schema_change",
            Response::Event(ServerEvent::SchemaChange(SchemaChange {
                change: SchemaChangeKind::Created,
                keyspace: "shop".to_owned(),
                target: SchemaTarget::Table("products".to_owned()),
            })),
        ),
    ];
    let context = ResponseContext {
        version: ProtocolVersion::V4,
        stream: 1,
        tracing_id: Some(uuid::Uuid::from_u128(7)),
        warnings: vec!["slow".to_owned()],
        custom_payload: vec![("k".to_owned(), Some(Bytes::from_static(b"v")))],
    };
    for (name, response) in responses {
        let plain = ResponseContext::new(1);
        let v5 = context.clone().at(ProtocolVersion::V5);
        for (form, context, compression) in [
            ("plain", &plain, None),
            ("full", &context, None),
            ("lz4", &plain, Some(Compression::Lz4)),
            ("v5", &v5, None),
        ] {
            // Only the long one gets shorter.
            if form == "plain" || form == "v5" || name == "rows" {
                let mut out = BytesMut::new();
                response.encode(context, compression, &mut out);
                put("frames", &format!("response_{name}_{form}"), &out);
            }
        }
    }
}

/// Statements of README and docs, and those that made the data directory.
fn statements() {
    let mut found: Vec<String> = Vec::new();
    for page in ["README.md", "docs/gateway.md", "docs/gateway-queries.md"] {
        let page = fs::read_to_string(root().join(page)).unwrap();
        let blocks = page.split("```sql\n").skip(1);
        let blocks = blocks.map(|block| block.split("```").next().unwrap());
        found.extend(
            blocks
                .flat_map(|block| block.split_inclusive(";\n"))
                .map(str::to_owned),
        );
    }
    let making = root().join("crates/annulus/tests/fixtures/statements.cql");
    let making = fs::read_to_string(making).unwrap();
    let making = making.lines().filter(|line| line.ends_with(';'));
    found.extend(making.map(str::to_owned));
    // One of those that begin with the same words.
    let begin = |statement: &str| {
        let words = statement.split_whitespace().take(3);
        words.collect::<Vec<_>>().join(" ").to_lowercase()
    };
    let found: BTreeMap<String, String> = found
        .into_iter()
        .map(|statement| (begin(&statement), statement))
        .collect();
    let step = found.len().div_ceil(STATEMENTS);
    for (number, statement) in found.values().step_by(step).enumerate() {
        put("statement", &format!("{number:02}"), statement.as_bytes());
    }
    for (name, text) in [
        (
            "comment",
            "-- who is there?\r\n/* all */ SELECT * FROM system.local // well",
        ),
        (
            "neighbours",
            "Select id From shop.t Order By v Ann Of ? Limit 3",
        ),
        (
            "batch",
            "begin unlogged batch update a.b set c = ? where d = 1; apply batch",
        ),
        (
            "insert",
            "INSERT\nINTO \"A\".\"b\" (c) VALUES (?) IF NOT EXISTS USING TTL :t",
        ),
        ("delete", "delete \"from\" from t where k in (1, 2)"),
        ("truncate", "truncate table shop . t"),
        ("role", "CREATE ROLE r WITH PASSWORD = 'x'"),
        ("describe", "DESC KEYSPACE shop"),
        ("use", "use \"Shop\""),
        ("drop", "DROP MATERIALIZED VIEW IF EXISTS v"),
    ] {
        put("recognition", name, text.as_bytes());
    }
}

fn searches() {
    for (name, body) in [
        ("usual", r#"{"vector":[1,-2.5,0.001953125],"limit":10}"#),
        ("alone", r#"{"vector":[1]}"#),
        (
            "blanks",
            " { \"vector\" : [ 1.0 ,\n-0 ] ,\t\"limit\" : 7 } ",
        ),
        (
            "filter",
            r#"{"vector":[1e-7,1E+3,-1.5e2],"limit":1,"filter":{"restrictions":[],"allow_filtering":true}}"#,
        ),
        (
            "more",
            r#"{"vector":[1],"filter":null,"more":{"vector":2}}"#,
        ),
        (
            "digits",
            r#"{"vector":[0.12345678901234567,1.2345678901234567e-08,9007199254740993]}"#,
        ),
        ("twice", r#"{"vector":[1],"vector":[2]}"#),
        ("escaped", r#"{"vector":[1],"\u0076ector":[2]}"#),
        ("last", r#"{"limit":1,"vector":[1]}"#),
        (
            "extremes",
            r#"{"vector":[3.4028235e38,1e-46,1e300,-0.0,12345678901234567890]}"#,
        ),
    ] {
        put("search", name, body.as_bytes());
    }
}
