//! Generations as their user sees them: written, opened, reused, damaged.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use tempfile::TempDir;

use super::layout::HEADER_BYTES;
use super::*;
use crate::codes::{CodeKind, CodebookParts};
use crate::memory::{RecordArray, RecordPlacement};
use crate::{
    CodeChoice, DistanceMetric, NeighbourIndexOptions, VectorPlacement, VectorQuantization,
};

/// Large vectors, so that little data makes several segments, of 64 MiB each.
const VECTOR_BYTES: u32 = 1 << 20;
const BLOCK_BYTES: u32 = 128;

/// The byte that fills the block or the vector of a slot in a version of the data.
fn fill_byte(slot: u32, version: u8) -> u8 {
    (slot * 7 + 1) as u8 ^ version
}

fn shape(slots: u32) -> SlotShape {
    SlotShape {
        slots,
        block_bytes: BLOCK_BYTES,
        vector_bytes: VECTOR_BYTES,
    }
}

fn contents(slots: u32) -> StoredContents {
    StoredContents {
        options: NeighbourIndexOptions {
            metric: DistanceMetric::Euclidean,
            quantization: VectorQuantization::F16,
            codes: CodeChoice::Nibbles,
            placement: VectorPlacement::Memory,
            max_connections: 7,
            build_beam_width: 99,
            search_beam_width: 33,
            ..NeighbourIndexOptions::new(5)
        },
        codebook: Some(CodebookParts {
            kind: CodeKind::Nibbles,
            metric: DistanceMetric::DotProduct,
            dimensions: 5,
            seed: 0x1234_5678_9abc_def0,
            mean: vec![0.25, -1.5, 0.0, f32::MIN_POSITIVE, 3e38],
        }),
        entry: slots.checked_sub(1),
        spread: (slots > 1).then_some(0.125),
        widths: [1.5, 12.0],
        // Nibbles of 5 dimensions have room for 128.
        centres: (0..2 * 128).map(|element| element as f32 / 8.0).collect(),
        upper: (0..slots).collect(),
        lacks_errors: false,
        // Every third slot is free; ids go the other way.
        ids: (0..slots)
            .rev()
            .filter(|slot| slot % 3 != 2)
            .map(|slot| (1_000_000 - slot, slot))
            .collect(),
        zero_ids: vec![3, 70_000],
    }
}

fn blocks(slots: u32) -> Vec<u8> {
    let bytes = |slot| [fill_byte(slot, 0); BLOCK_BYTES as usize];
    (0..slots).flat_map(bytes).collect()
}

/// Fills vectors as a graph would.
fn copy_vectors(version: u8) -> impl FnMut(std::ops::Range<u32>, &mut [u8]) {
    move |slots, bytes| {
        assert_eq!(bytes.len(), slots.len() * VECTOR_BYTES as usize);
        for (slot, vector) in slots.zip(bytes.chunks_mut(VECTOR_BYTES as usize)) {
            vector.fill(fill_byte(slot, version));
        }
    }
}

/// Writes a generation; segments of `last` with these numbers are reused.
fn save(
    directory: &Path,
    slots: u32,
    last: Option<(&SavedGeneration, &[usize])>,
    version: u8,
) -> SavedGeneration {
    fs::create_dir_all(directory).unwrap();
    let mut writer = GenerationWriter::create(directory, shape(slots)).unwrap();
    for some in blocks(slots).chunks(BLOCK_BYTES as usize * 10) {
        writer.put_blocks(some).unwrap();
    }
    for number in 0.. {
        if writer.next_segment().is_none() {
            break;
        }
        let kept = last.is_some_and(|(last, numbers)| {
            numbers.contains(&number) && writer.keep_segment(last).unwrap()
        });
        if !kept {
            writer.write_segment(copy_vectors(version)).unwrap();
        }
    }
    writer.finish(&contents(slots)).unwrap()
}

/// A generation of so many slots: of two segments if there are more than 64.
fn saved(slots: u32) -> TempDir {
    let directory = tempfile::tempdir().unwrap();
    save(directory.path(), slots, None, 0);
    directory
}

/// An array for vectors of the [`shape`].
fn vectors_array() -> RecordArray {
    RecordArray::new(VECTOR_BYTES as usize, RecordPlacement::Memory)
}

/// Opens, maps and verifies everything.
fn verify(directory: &Path) -> Result<(OpenedGeneration, RecordArray), SnapshotError> {
    let opened = open(directory)?;
    let mut array = vectors_array();
    let generation = SavedGeneration {
        directory: platform::OpenDirectory::open(directory)
            .map_err(SnapshotError::io("open", directory))?,
        segments: opened.generation.segments.clone(),
    };
    let source = MappedVectors::map(Arc::new(generation), &mut array)?;
    let mut buffer = Vec::new();
    let mut bytes = 0;
    for number in 0..source.segments() {
        for piece in 0..source.pieces(number) {
            bytes += source.verify_piece(number, piece, &mut buffer)?;
        }
    }
    assert_eq!(bytes, source.bytes());
    Ok((opened, array))
}

fn record(array: &RecordArray, slot: u32) -> &[u8] {
    let record = array.get(slot).expect("the slot is there");
    // SAFETY: no one writes to the array.
    unsafe { std::slice::from_raw_parts(record, array.stride()) }
}

fn inode(directory: &Path, name: &str) -> u64 {
    fs::metadata(directory.join(name)).unwrap().ino()
}

#[test]
fn a_written_snapshot_is_opened() {
    let slots = 65;
    let directory = saved(slots);
    let names: BTreeSet<_> = fs::read_dir(directory.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let expected = ["graph", "vectors-00000", "vectors-00001"];
    assert_eq!(names, expected.map(String::from).into());

    let (opened, vectors) = verify(directory.path()).unwrap();
    assert_eq!(opened.contents, contents(slots));
    assert_eq!(opened.shape, shape(slots));
    let mut read = vectors_array();
    MappedVectors::read(&opened.generation, &mut read).unwrap();
    // A mapped file stays, whatever becomes of its name.
    drop(directory);
    for slot in 0..slots {
        let byte = fill_byte(slot, 0);
        for array in [&opened.blocks, &vectors, &read] {
            assert!(record(array, slot).iter().all(|&found| found == byte));
        }
    }
    // The first 64 vectors are a whole chunk, and are in the file; the rest was copied.
    assert!(!vectors.is_writable(0) && vectors.is_writable(64));
    assert!(opened.blocks.is_writable(0) && read.is_writable(0));
}

#[test]
fn blocks_of_several_chunks_and_pieces_are_read() {
    let directory = tempfile::tempdir().unwrap();
    let chunk_slots =
        RecordArray::new(BLOCK_BYTES as usize, RecordPlacement::Memory).records_per_chunk() as u32;
    let slots = chunk_slots + 1;
    let shape = SlotShape {
        vector_bytes: 0,
        ..shape(slots)
    };
    let mut writer = GenerationWriter::create(directory.path(), shape).unwrap();
    writer.put_blocks(&blocks(slots)).unwrap();
    assert_eq!(writer.next_segment(), None);
    writer.finish(&contents(slots)).unwrap();
    let (opened, _) = verify(directory.path()).unwrap();
    assert_eq!(opened.contents, contents(slots));
    for slot in 0..slots {
        let byte = fill_byte(slot, 0);
        assert_eq!(record(&opened.blocks, slot), [byte; BLOCK_BYTES as usize]);
    }
}

#[test]
fn an_index_without_vectors_is_a_snapshot_too() {
    for codebook in [contents(0).codebook, None] {
        let directory = tempfile::tempdir().unwrap();
        let contents = StoredContents {
            codebook,
            entry: None,
            spread: None,
            centres: Vec::new(),
            ids: Vec::new(),
            zero_ids: Vec::new(),
            ..contents(0)
        };
        let writer = GenerationWriter::create(directory.path(), shape(0)).unwrap();
        assert_eq!(writer.finish(&contents).unwrap().segments(), []);
        let (opened, _) = verify(directory.path()).unwrap();
        assert_eq!(opened.contents, contents);
        assert_eq!(opened.blocks.get(0), None);
    }
}

#[test]
fn segments_that_did_not_change_are_linked() {
    let parent = tempfile::tempdir().unwrap();
    let [first, second, third] = ["1", "2", "3"].map(|name| parent.path().join(name));
    let last = save(&first, 65, None, 0);
    // The index has grown: the last segment is another one, the first is reused.
    let last = save(&second, 70, Some((&last, &[0, 1])), 0);
    assert_eq!(
        inode(&first, "vectors-00000"),
        inode(&second, "vectors-00000")
    );
    assert_ne!(
        inode(&first, "vectors-00001"),
        inode(&second, "vectors-00001")
    );
    // The old generation is not needed any more.
    fs::remove_dir_all(&first).unwrap();
    let (opened, _) = verify(&second).unwrap();
    assert_eq!(opened.generation.segments(), last.segments());

    // An opened segment is reused as a written one is, unless its vectors changed. It makes no
    // difference that its directory was moved.
    let moved = parent.path().join("moved");
    fs::rename(&second, &moved).unwrap();
    save(&third, 70, Some((&opened.generation, &[1])), 1);
    fs::rename(&moved, &second).unwrap();
    assert_ne!(
        inode(&second, "vectors-00000"),
        inode(&third, "vectors-00000")
    );
    assert_eq!(
        inode(&second, "vectors-00001"),
        inode(&third, "vectors-00001")
    );
    let (_, vectors) = verify(&third).unwrap();
    assert_eq!(record(&vectors, 0)[9], fill_byte(0, 1));
    assert_eq!(record(&vectors, 69)[9], fill_byte(69, 0));
}

#[test]
fn a_segment_that_is_gone_is_written_anew() {
    let parent = tempfile::tempdir().unwrap();
    let [first, second] = ["1", "2"].map(|name| parent.path().join(name));
    let last = save(&first, 65, None, 0);
    fs::remove_file(first.join("vectors-00000")).unwrap();
    fs::write(first.join("vectors-00001"), "cut short").unwrap();
    save(&second, 65, Some((&last, &[0, 1])), 0);
    verify(&second).unwrap();
}

#[test]
fn options_that_differ_are_named() {
    let directory = saved(1);
    let opened = open(directory.path()).unwrap();
    let options = contents(1).options;
    let searched_otherwise = NeighbourIndexOptions {
        search_beam_width: 500,
        placement: VectorPlacement::File,
        ..options
    };
    opened.expect_options(&searched_otherwise).unwrap();
    let others = [
        (
            "dimensions",
            NeighbourIndexOptions {
                dimensions: 6,
                ..options
            },
        ),
        (
            "metric",
            NeighbourIndexOptions {
                metric: DistanceMetric::Cosine,
                ..options
            },
        ),
        (
            "quantization",
            NeighbourIndexOptions {
                quantization: VectorQuantization::F32,
                ..options
            },
        ),
        (
            "codes",
            NeighbourIndexOptions {
                codes: CodeChoice::Bytes,
                ..options
            },
        ),
        (
            "max_connections",
            NeighbourIndexOptions {
                max_connections: 8,
                ..options
            },
        ),
    ];
    for (name, other) in others {
        let error = opened.expect_options(&other).unwrap_err();
        assert!(matches!(error, SnapshotError::Options { option, .. } if option == name));
        assert!(error.to_string().contains("graph"), "{error}");
    }
}

/// The first damage that is found, as file name and message.
fn damage(directory: &Path) -> (String, String) {
    let error = verify(directory).err().expect("the damage is found");
    let message = error.to_string();
    let path = match error {
        SnapshotError::Io { path, .. }
        | SnapshotError::NotASnapshot { path }
        | SnapshotError::Version { path, .. }
        | SnapshotError::Damaged { path, .. }
        | SnapshotError::Options { path, .. } => path,
        error => panic!("{error}"),
    };
    let name = path.file_name().unwrap().to_str().unwrap().to_owned();
    (name, message)
}

/// Changes a byte of a file; done twice, it is as before.
fn flip(path: &Path, offset: u64, mask: u8) {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, offset).unwrap();
    byte[0] ^= mask;
    file.write_all_at(&byte, offset).unwrap();
}

#[test]
fn a_flipped_byte_is_found_wherever_it_is() {
    let directory = saved(3);
    let names = ["graph", "vectors-00000"];
    let files = names.map(|name| {
        let path = directory.path().join(name);
        let bytes = fs::metadata(&path).unwrap().len();
        (name, path, bytes)
    });
    let config = ProptestConfig {
        // Nothing is gained by smaller numbers.
        max_shrink_iters: 0,
        ..ProptestConfig::with_cases(60)
    };
    let positions = (0..files.len(), any::<prop::sample::Index>(), 1..=255u8);
    proptest!(config, |((file, position, mask) in positions)| {
        let (name, path, bytes) = &files[file];
        let offset = position.index(*bytes as usize) as u64;
        flip(path, offset, mask);
        let (found_in, message) = damage(directory.path());
        prop_assert_eq!(&found_in, name, "{}", message);
        prop_assert!(check_snapshot(directory.path(), &mut |_| true).is_err());
        flip(path, offset, mask);
    });
    verify(directory.path()).unwrap();
    assert_eq!(check_snapshot(directory.path(), &mut |_| true).unwrap(), 2);
    let mut pieces = 0;
    check_snapshot(directory.path(), &mut |_| {
        pieces += 1;
        false
    })
    .unwrap();
    assert_eq!(pieces, 1, "it stops when it is told to");
}

#[test]
fn every_byte_of_headers_and_tables_is_covered() {
    let directory = saved(3);
    let path = directory.path().join("graph");
    let bytes = fs::metadata(&path).unwrap().len();
    let tables = HEADER_BYTES as u64 + 3 * u64::from(BLOCK_BYTES);
    for offset in (0..128).chain(4070..4100).chain(tables..bytes) {
        flip(&path, offset, 0x10);
        open(directory.path()).err().expect("the damage is found");
        flip(&path, offset, 0x10);
    }
    // The head of a segment is looked at when it is opened.
    let path = directory.path().join("vectors-00000");
    for offset in (0..32).chain([4095]) {
        flip(&path, offset, 0x10);
        open(directory.path()).err().expect("the damage is found");
        flip(&path, offset, 0x10);
    }
    verify(directory.path()).unwrap();
}

#[test]
fn files_that_are_cut_short_or_longer_are_refused_at_once() {
    for name in ["graph", "vectors-00000"] {
        let directory = saved(3);
        let path = directory.path().join(name);
        let file = fs::File::options().write(true).open(&path).unwrap();
        let bytes = file.metadata().unwrap().len();
        for cut in [bytes + 1, bytes - 1, bytes / 2, 4097, 4096, 4095, 8, 0] {
            file.set_len(cut).unwrap();
            let error = open(directory.path()).err().expect("it is refused");
            assert!(error.to_string().contains(name), "{error}");
        }
        fs::remove_file(&path).unwrap();
        let error = open(directory.path()).err().expect("it is missing");
        assert!(matches!(error, SnapshotError::Io { .. }), "{error}");
    }
}

#[test]
fn foreign_files_are_told_from_damaged_ones() {
    let directory = saved(3);
    let path = |name| directory.path().join(name);
    for name in ["graph", "vectors-00000"] {
        let sound = fs::read(path(name)).unwrap();
        fs::write(path(name), vec![b'#'; sound.len()]).unwrap();
        let error = open(directory.path()).err().expect("it is refused");
        assert!(
            matches!(error, SnapshotError::NotASnapshot { .. }),
            "{error}"
        );
        fs::write(path(name), &sound).unwrap();
    }
    // A segment of another generation of the same shape.
    let other = tempfile::tempdir().unwrap();
    save(other.path(), 3, None, 1);
    fs::copy(other.path().join("vectors-00000"), path("vectors-00000")).unwrap();
    let (name, message) = damage(directory.path());
    assert_eq!(name, "vectors-00000", "{message}");
}

#[test]
fn a_generation_that_was_not_finished_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut writer = GenerationWriter::create(directory.path(), shape(3)).unwrap();
    writer.put_blocks(&blocks(3)).unwrap();
    writer.write_segment(copy_vectors(0)).unwrap();
    drop(writer);
    let error = open(directory.path()).err().expect("it is refused");
    assert!(
        matches!(error, SnapshotError::NotASnapshot { .. }),
        "{error}"
    );
    // The file is not written over.
    let error = GenerationWriter::create(directory.path(), shape(3))
        .err()
        .expect("there is one");
    assert!(matches!(error, SnapshotError::Io { .. }), "{error}");
}

#[test]
fn a_later_version_is_named() {
    let directory = saved(1);
    flip(&directory.path().join("graph"), 8, 2 ^ 3);
    let error = open(directory.path()).err().expect("it is refused");
    assert!(
        matches!(
            error,
            SnapshotError::Version {
                found: 3,
                known: 2,
                ..
            }
        ),
        "{error}"
    );
}

/// Puts bytes into the header and makes its checksum right, as somebody with bad intent would.
fn forge(directory: &Path, offset: usize, bytes: &[u8]) {
    let path = directory.join("graph");
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut header = [0; HEADER_BYTES];
    file.read_exact_at(&mut header, 0).unwrap();
    header[offset..offset + bytes.len()].copy_from_slice(bytes);
    let (fields, checksum) = header.split_at_mut(HEADER_BYTES - 16);
    checksum.copy_from_slice(&super::checksum::Checksum::of(fields).to_bytes());
    file.write_all_at(&header, 0).unwrap();
}

#[test]
fn forged_headers_are_errors() {
    let max = u64::MAX.to_le_bytes();
    let directory = saved(3);
    let header = fs::read(directory.path().join("graph")).unwrap()[..HEADER_BYTES].to_vec();
    let forgeries: [(usize, &[u8]); 16] = [
        (16, &max),
        (24, &max[..4]),
        (24, &[0; 4]),
        (28, &4u32.to_le_bytes()),
        (32, &max[..4]),
        (32, &[0; 4]),
        (36, &max[..4]),
        (36, &1u32.to_le_bytes()),
        (40, &max),
        (40, &(1u64 << 61).to_le_bytes()),
        (48, &max),
        (56, &[0; 4]),
        (72, &[4]),
        (76, &[9]),
        (76, &[3]),
        (80, &max[..4]),
    ];
    for (offset, bytes) in forgeries {
        forge(directory.path(), offset, bytes);
        let error = open(directory.path()).err().expect("it is refused");
        assert!(
            matches!(error, SnapshotError::Damaged { .. }),
            "{offset}: {error}"
        );
        forge(directory.path(), 0, &header[..112]);
    }
    verify(directory.path()).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// A header with a right checksum, whatever its fields, gives an error or the snapshot, and
    /// takes no more memory than the file is long.
    #[test]
    fn random_headers_do_no_harm(
        patches in prop::collection::vec((8usize..112, any::<u8>()), 1..6),
        slots in 0u32..3,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let shape = SlotShape { vector_bytes: 0, ..shape(slots) };
        let mut writer = GenerationWriter::create(directory.path(), shape).unwrap();
        writer.put_blocks(&blocks(slots)).unwrap();
        writer.finish(&contents(slots)).unwrap();
        for (offset, byte) in patches {
            forge(directory.path(), offset, &[byte]);
        }
        let _ = verify(directory.path());
    }
}
