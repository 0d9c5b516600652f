//! Arrays in memory and in files: growth, gaps, snapshots' chunks, and disks that are full.

use std::collections::BTreeMap;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use proptest::prelude::*;

use super::*;

/// Both places. Miri has no files, so it gets one.
fn places() -> Vec<RecordPlacement> {
    let mut places = vec![RecordPlacement::Memory];
    if !cfg!(miri) {
        places.push(RecordPlacement::File(std::env::temp_dir()));
    }
    places
}

/// A record of at least eight bytes as a number that threads may share.
fn number(array: &RecordArray, index: u32) -> &AtomicU64 {
    let record = array.get(index).expect("the chunk exists");
    // SAFETY: the record lives as long as the array, is aligned to eight bytes by the strides that
    // the tests use, and is accessed only by atomics.
    unsafe { AtomicU64::from_ptr(record.cast()) }
}

fn piece_of(bytes: &[u8]) -> MappedPiece {
    use std::io::Write;

    let mut file = tempfile::tempfile().unwrap();
    file.write_all(bytes).unwrap();
    let of = Arc::<FileFaults>::default().file("a file".to_owned());
    MappedPiece {
        mapping: Arc::new(Mapping::read_only(&file, bytes.len(), &of).unwrap()),
        offset: 0,
    }
}

/// Every record of `array`'s first chunk as its own number plus 1.
fn counted(array: &RecordArray) -> Vec<u8> {
    let numbers = 1..=array.records_per_chunk() as u64;
    numbers.flat_map(u64::to_ne_bytes).collect()
}

#[test]
fn chunks_have_a_power_of_two_of_records_near_the_size_aimed_at() {
    let records = |stride, place| RecordArray::new(stride, place).records_per_chunk();
    let file = || RecordPlacement::File("nowhere".into());
    assert_eq!(records(1, RecordPlacement::Memory), 65_536);
    assert_eq!(records(32, RecordPlacement::Memory), 65_536);
    assert_eq!(records(64, RecordPlacement::Memory), 32_768);
    assert_eq!(records(448, RecordPlacement::Memory), 4_096);
    assert_eq!(records(1_536, file()), 2_048);
    assert_eq!(records(64_000, file()), 64);
    assert_eq!(records(1 << 20, RecordPlacement::Memory), 64);
}

#[test]
fn records_are_zeros_apart_and_aligned_as_their_stride() {
    for place in places() {
        let array = RecordArray::new(192, place);
        let last = array.records_per_chunk() as u32 * 2 - 1;
        for index in [0, 1, last - 1, last] {
            array.ensure(index).unwrap();
        }
        for index in [0, 1, last - 1, last] {
            let record = array.get(index).unwrap();
            assert_eq!(record.align_offset(64), 0);
            // SAFETY: ensured above.
            assert_eq!(unsafe { array.get_unchecked(index) }, record);
            // SAFETY: only this test has the record.
            let bytes = unsafe { std::slice::from_raw_parts_mut(record, 192) };
            assert!(bytes.iter().all(|&byte| byte == 0), "record {index}");
            bytes.fill(index as u8 | 1);
        }
        let (first, second) = (array.get(0).unwrap(), array.get(1).unwrap());
        assert_eq!(second.addr() - first.addr(), 192);
        assert_eq!(number(&array, last).load(Ordering::Relaxed), u64::MAX);
    }
}

#[test]
fn indexes_may_be_sparse() {
    for place in places() {
        let array = RecordArray::new(8, place);
        let indexes = [u32::MAX, 0, 1 << 31, 70_000];
        for index in indexes {
            assert_eq!(array.get(index), None);
            array.ensure(index).unwrap();
            number(&array, index).store(u64::from(index) + 1, Ordering::Relaxed);
        }
        for index in indexes {
            let value = number(&array, index).load(Ordering::Relaxed);
            assert_eq!(value, u64::from(index) + 1);
        }
        assert_eq!(array.get(200_000), None);
        let Footprint { anonymous, mapped } = array.footprint();
        let bytes = anonymous + mapped;
        assert!((4 * 65_536 * 8..4 * 65_536 * 8 + 20_000).contains(&bytes));
    }
}

#[test]
fn readers_see_whole_records_while_the_array_grows() {
    for place in places() {
        let array = RecordArray::new(1 << 12, place);
        let records = if cfg!(miri) { 2 } else { 20 } * array.records_per_chunk() as u32;
        // Records below this number are written.
        let written = AtomicU32::new(0);
        std::thread::scope(|scope| {
            // Two growers race for the same chunks.
            for _ in 0..2 {
                scope.spawn(|| {
                    for index in (0..records).step_by(64) {
                        array.ensure(index).unwrap();
                    }
                });
            }
            scope.spawn(|| {
                for index in 0..records {
                    array.ensure(index).unwrap();
                    number(&array, index).store(u64::from(index) + 1, Ordering::Relaxed);
                    written.store(index + 1, Ordering::Release);
                }
            });
            scope.spawn(|| {
                let mut seen = 0;
                while seen < records {
                    let until = written.load(Ordering::Acquire);
                    for index in (seen / 2..until).step_by(97) {
                        // SAFETY: written after it was ensured.
                        let record = unsafe { array.get_unchecked(index) };
                        assert_eq!(array.get(index), Some(record));
                        let value = number(&array, index).load(Ordering::Relaxed);
                        assert_eq!(value, u64::from(index) + 1);
                    }
                    seen = until;
                    std::thread::yield_now();
                }
            });
        });
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 2 } else { 64 }, ..Default::default() })]

    /// Compares an array with a map of what was written.
    #[test]
    fn an_array_remembers_what_a_map_remembers(
        stride in 1usize..100,
        in_file in any::<bool>(),
        steps in prop::collection::vec((0u32..400_000, any::<u64>()), 1..60),
    ) {
        let stride = stride * 8;
        let in_file = in_file && !cfg!(miri);
        let place = if in_file { RecordPlacement::File(std::env::temp_dir()) } else { RecordPlacement::Memory };
        let array = RecordArray::new(stride, place);
        let mut model = BTreeMap::new();
        for (index, value) in steps {
            array.ensure(index).unwrap();
            number(&array, index).store(value, Ordering::Relaxed);
            model.insert(index, value);
        }
        for (&index, &value) in &model {
            prop_assert_eq!(number(&array, index).load(Ordering::Relaxed), value);
        }
    }
}

#[test]
fn bytes_are_filled_in_across_chunks() {
    for place in places() {
        let mut array = RecordArray::new(24, place);
        let records = array.records_per_chunk() as u32;
        array.ensure(0).unwrap();
        array.ensure(records).unwrap();
        let bytes: Vec<u8> = (0..100).collect();
        let start = u64::from(records) * 24 - 50;
        array.fill(start, &bytes);
        let at = |byte: u64| {
            let record = array.get((byte / 24) as u32).expect("the chunk exists");
            // SAFETY: within the record, and only this test has the array.
            unsafe { record.add((byte % 24) as usize).read() }
        };
        assert!((0..100).all(|n| at(start + n) == n as u8));
        assert_eq!((at(start - 1), at(start + 100)), (0, 0));
    }
}

#[cfg(not(miri))]
#[test]
fn a_read_only_chunk_is_copied_before_it_is_written() {
    for place in places() {
        let array = RecordArray::new(8, place);
        let records = array.records_per_chunk() as u32;
        let piece = piece_of(&counted(&array));
        array.adopt(records, piece).unwrap();
        let index = records + 3;
        assert!(!array.is_writable(index));
        array.ensure(index).unwrap();
        let before = array.get(index).unwrap();

        let retired = array
            .make_writable(index)
            .unwrap()
            .expect("it was read-only");
        assert!(array.is_writable(index));
        assert!(array.make_writable(index).unwrap().is_none());
        number(&array, index).store(99, Ordering::Relaxed);
        // SAFETY: the old memory lives, and no one writes to it.
        assert_eq!(unsafe { before.cast::<u64>().read() }, 4);
        drop(retired);
        assert_eq!(number(&array, index).load(Ordering::Relaxed), 99);
        assert_eq!(number(&array, index + 1).load(Ordering::Relaxed), 5);
    }
}

#[cfg(not(miri))]
#[test]
#[should_panic(expected = "shorter than a chunk")]
fn a_piece_that_is_too_short_is_a_bug() {
    let array = RecordArray::new(8, RecordPlacement::Memory);
    let bytes = counted(&array);
    let piece = piece_of(&bytes[1..]);
    let _ = array.adopt(0, piece);
}

/// A disk with room for two chunks of 4 MiB.
fn small_disk(file: &File, range: Range<u64>) -> io::Result<()> {
    match range.end > 8 << 20 {
        true => Err(io::Error::from_raw_os_error(28)),
        false => disk::allocate(file, range),
    }
}

#[cfg(not(miri))]
#[test]
fn a_full_disk_is_an_error_and_harms_nothing() {
    let place = RecordPlacement::File(std::env::temp_dir());
    let array = RecordArray::with_allocate(64 << 10, place, small_disk);
    array.ensure(0).unwrap();
    array.ensure(64).unwrap();
    number(&array, 127).store(5, Ordering::Relaxed);
    for _ in 0..2 {
        let error = array.ensure(128).unwrap_err();
        assert!(matches!(error, GrowError::DiskFull { bytes, .. } if bytes == 4 << 20));
        assert_eq!(array.get(128), None);
    }
    assert_eq!(number(&array, 127).load(Ordering::Relaxed), 5);
    let piece = piece_of(&vec![1; 4 << 20]);
    array.adopt(256, piece).unwrap();
    assert!(array.make_writable(256).is_err());
    assert!(!array.is_writable(256));
    let ones = u64::from_ne_bytes([1; 8]);
    assert_eq!(number(&array, 256).load(Ordering::Relaxed), ones);
}

#[cfg(not(miri))]
#[test]
fn a_directory_that_is_missing_is_an_error_that_names_it() {
    let array = RecordArray::new(64, RecordPlacement::File("/nonexistent/directory".into()));
    let error = array.ensure(0).unwrap_err();
    assert!(matches!(error, GrowError::File { .. }));
    assert!(
        error.to_string().contains("/nonexistent/directory"),
        "{error}"
    );
}
