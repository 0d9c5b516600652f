//! Entry points of the fuzz targets: any bytes as a search, and as the files of a snapshot.
//!
//! Checksums keep almost every change of a file from being read any further. So a file is read
//! twice: as it is, and with checksums that are right.

use std::path::Path;

use filter_columns::IdSet;
use store_api::types::AnnRequest;
use value::CqlType;
use xxhash_rust::xxh3::{Xxh3, xxh3_128};

use crate::keys::{KeyColumn, KeySchema};
use crate::routes::quick_json;
use crate::snapshot::manifest::Manifest;
use crate::snapshot::rows;

/// The ids of vectors that the index of a snapshot holds.
const HELD_IDS: std::ops::Range<u32> = 0..64;
/// The time of opening, in seconds since the epoch.
const NOW_S: u32 = 1_700_000_000;
/// The bytes of a frame before its payload: length and kind.
const FRAME_HEAD_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 16;
/// The first line of a manifest, up to its checksum.
const MANIFEST_HEAD: &[u8] = b"annulus-index-snapshot 1 ";

/// Reads bytes as the JSON body of a search.
///
/// If the quick reader reads it, the JSON library reads the same, bit for bit.
///
/// # Panics
/// If that does not hold.
pub fn search(bytes: &[u8]) {
    let Some(quick_json::ParsedSearch { search: quick, .. }) = quick_json::read(bytes) else {
        return;
    };
    let slow: AnnRequest = serde_json::from_slice(bytes).expect("the library reads it, too");
    let bits = |search: &AnnRequest| -> Vec<u32> {
        let elements = search.vector.iter();
        elements.map(|element| element.to_bits()).collect()
    };
    assert_eq!(bits(&quick), bits(&slow));
    assert_eq!(quick, slow);
}

/// Reads bytes as the file `current` of a snapshot.
///
/// A value that can be read, and is then written, reads as the same value again.
///
/// # Panics
/// If that does not hold.
pub fn manifest(bytes: &[u8]) {
    let read = |bytes: &[u8]| {
        if let Ok(manifest) = Manifest::decode(bytes) {
            assert_eq!(Manifest::decode(&manifest.encode()), Ok(manifest));
        }
    };
    read(bytes);
    let line = bytes.iter().position(|byte| *byte == b'\n');
    let json = line.map_or(bytes, |end| &bytes[end + 1..]);
    let checksum = format!("{:032x}\n", xxh3_128(json));
    read(&[MANIFEST_HEAD, checksum.as_bytes(), json].concat());
}

/// Reads bytes as the file `rows` of a snapshot, for tables with several kinds of keys.
///
/// The file is refused, or every row has a vector and a key of its own.
///
/// # Panics
/// If that does not hold, or no temporary file can be written.
pub fn rows(bytes: &[u8]) {
    let directory = in_memory();
    let path = directory.path().join("rows");
    for content in [bytes, &with_right_checksums(bytes)] {
        std::fs::write(&path, content).expect("a temporary file");
        for schema in schemas() {
            read_rows(&path, &schema);
        }
    }
}

fn read_rows(path: &Path, schema: &KeySchema) {
    let mut held = IdSet::default();
    HELD_IDS.for_each(|id| {
        held.insert(id);
    });
    for generation in [1, 2] {
        let Ok(restored) = rows::read(
            path,
            generation,
            schema,
            vec![value::CqlType::Int],
            &held,
            NOW_S,
        ) else {
            continue;
        };
        let ids: Vec<u32> = HELD_IDS.filter(|id| restored.has(*id)).collect();
        let (items, keys, unread) = restored.finish();
        let mut saved = Vec::new();
        items.saved_rows(&keys, 0, usize::MAX, |row, key| {
            let key = schema.saved_key(key).expect("a saved key is a key");
            assert_eq!(keys.id(key.as_bytes()), Some(row.id));
            saved.push(row.id);
        });
        assert_eq!(saved, ids);
        for key in unread.missing.iter().chain(&unread.expired) {
            assert!(schema.is_key(key.as_bytes()));
            schema.show(key);
        }
    }
}

/// Keys of one column, of two, and with numbers that have several forms.
fn schemas() -> [KeySchema; 3] {
    let columns = |types: &[CqlType]| -> Vec<KeyColumn> {
        let columns = types.iter().enumerate();
        columns
            .map(|(at, cql_type)| KeyColumn {
                name: format!("k{at}"),
                cql_type: cql_type.clone(),
            })
            .collect()
    };
    let schema = |clustering: &[CqlType]| KeySchema {
        partition: columns(&[CqlType::Int]),
        clustering: columns(clustering),
    };
    [
        schema(&[]),
        schema(&[CqlType::Text]),
        schema(&[CqlType::Decimal, CqlType::Varint]),
    ]
}

/// A file of frames with the checksums that its frames need, as far as it consists of frames.
fn with_right_checksums(bytes: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    let mut at = 0;
    for number in 0_u64.. {
        let frame = bytes.get_mut(at..).unwrap_or_default();
        let Some(length) = frame
            .first_chunk()
            .map(|length| u32::from_le_bytes(*length))
        else {
            break;
        };
        let payload_end = FRAME_HEAD_BYTES + length as usize;
        let Some((checked, behind)) = frame.split_at_mut_checked(payload_end) else {
            break;
        };
        let Some(checksum) = behind.first_chunk_mut::<CHECKSUM_BYTES>() else {
            break;
        };
        let mut hash = Xxh3::new();
        hash.update(&number.to_le_bytes());
        hash.update(checked);
        *checksum = hash.digest128().to_le_bytes();
        at += payload_end + CHECKSUM_BYTES;
    }
    bytes
}

/// A temporary directory, in memory where the system has a place for that.
fn in_memory() -> tempfile::TempDir {
    let directory = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir());
    directory.expect("a temporary directory")
}
