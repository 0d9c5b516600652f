//! Tests that a peer can't make the server allocate more than a small multiple of the bytes it
//! sends.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use bytes::{Bytes, BytesMut};
use cql::wire::*;
use proptest::prelude::*;

use crate::hostile::frame;
use crate::strategies::{bytes, request};

thread_local! {
    /// The bytes that this thread allocated. Freed bytes are not subtracted, so this is above any
    /// peak.
    static ALLOCATED: Cell<usize> = const { Cell::new(0) };
}

/// The system's allocator with a count for each thread.
struct Counting;

// SAFETY: every call is passed on unchanged to the system's allocator, which keeps the contract;
// the counter is a thread-local without a destructor or lazy initialisation, so it allocates
// nothing itself.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.set(ALLOCATED.get() + layout.size());
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller's obligations are the system allocator's.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The bytes that `work` allocates.
fn allocated_by<T>(work: impl FnOnce() -> T) -> usize {
    let before = ALLOCATED.get();
    drop(work());
    ALLOCATED.get() - before
}

const LIMIT: usize = 256 << 20;

/// The most bytes that a body of `length` bytes may allocate. The densest messages consist of empty
/// strings or of columns without a name, each of a few bytes on the wire and a hundred in memory.
/// The constant is for error texts.
fn allowed(length: usize) -> usize {
    32 * length + 4096
}

/// Writes large numbers over the bytes of a body, one number at one position at a time.
fn each_lie(body: &[u8], mut check: impl FnMut(Bytes)) {
    let lies: [&[u8]; 6] = [
        &[0x7F, 0xFF, 0xFF, 0xFF],
        &[0x0F, 0xFF, 0xFF, 0xFF],
        &[0x00, 0xFF, 0xFF, 0xFF],
        &[0xFF, 0xFF],
        &[0x7F, 0xFF],
        &[0xFF],
    ];
    for lie in lies {
        for position in 0..body.len().saturating_sub(lie.len()) {
            let mut damaged = body.to_vec();
            damaged[position..position + lie.len()].copy_from_slice(lie);
            check(damaged.into());
        }
    }
}

fn check_request(opcode: Opcode, flags: u8, body: Bytes) {
    let frame = frame(opcode, flags, body);
    let allocated = allocated_by(|| Request::decode(&frame, None, LIMIT));
    assert!(
        allocated <= allowed(frame.body.len()),
        "{allocated} bytes for {} of {opcode:?}",
        frame.body.len()
    );
}

fn check_response(opcode: Opcode, body: Bytes) {
    let frame = frame(opcode, 0, body);
    let allocated = allocated_by(|| match Response::decode(&frame, None, LIMIT) {
        Ok((_, Response::Rows(rows))) => drop(rows.decode()),
        other => drop(other),
    });
    // The metadata of a result set is read twice, once to find the rows.
    assert!(
        allocated <= 2 * allowed(frame.body.len()),
        "{allocated} bytes for {} of {opcode:?}",
        frame.body.len()
    );
}

proptest! {
    #[test]
    fn no_length_or_count_in_a_request_is_believed(request in request()) {
        let mut out = BytesMut::new();
        request.encode(0, None, &mut out);
        let body = out.split_off(HEADER_LENGTH);
        each_lie(&body, |damaged| check_request(request.opcode(), 0, damaged));
    }

    #[test]
    fn arbitrary_bodies_allocate_little(body in bytes(2000), flags in any::<u8>()) {
        let flags = flags & !FrameFlags::COMPRESSION.0;
        for opcode in (0..=16).filter_map(Opcode::from_code) {
            check_request(opcode, flags, body.clone());
            check_response(opcode, body.clone());
        }
    }
}

/// The densest requests have as many items as fit, each as short as possible.
#[test]
fn the_densest_requests_stay_within_the_bound() {
    let many = |head: &[u8], item: &[u8], count: u16| -> Bytes {
        [head, &count.to_be_bytes(), &item.repeat(usize::from(count))]
            .concat()
            .into()
    };
    let most = u16::MAX;
    check_request(Opcode::Startup, 0, many(b"", &[0; 4], most));
    check_request(Opcode::Register, 0, many(b"", &[0; 2], most));
    let query = b"\0\0\0\0\0\x01";
    let values = [&query[..], &[0x01]].concat();
    check_request(Opcode::Query, 0, many(&values, &[0; 4], most));
    let named = [&query[..], &[0x41]].concat();
    check_request(Opcode::Query, 0, many(&named, &[0; 6], most));
    check_request(Opcode::Batch, 0, many(&[0], &[1, 0, 0, 0, 0], most));
    let payload = FrameFlags::CUSTOM_PAYLOAD.0;
    check_request(Opcode::Options, payload, many(b"", &[0; 6], most));
}

#[test]
fn the_densest_responses_stay_within_the_bound() {
    let result = |kind: i32, flags: i32, count: i32, rest: Vec<u8>| -> Bytes {
        let mut body: Vec<u8> = [kind, flags, count]
            .iter()
            .flat_map(|n| n.to_be_bytes())
            .collect();
        body.extend(rest);
        body.into()
    };
    // Columns without a name, of one table without a name, and no rows.
    let columns = [&[0; 4][..], &[0, 0, 0, 9].repeat(50_000), &[0; 4]].concat();
    check_response(Opcode::Result, result(2, 1, 50_000, columns));
    // Tuples of one element in one another.
    let nested = [0, 0x31, 0, 1].repeat(30);
    let columns = [&[0; 4][..], &[0, 0], &nested, &[0, 9], &[0; 4]].concat();
    check_response(Opcode::Result, result(2, 1, 1, columns));
    // Rows of one null cell.
    let cells = [&50_000i32.to_be_bytes()[..], &[0xFF; 4].repeat(50_000)].concat();
    check_response(Opcode::Result, result(2, 4, 1, cells));
    // More rows, columns and key indexes than the body has bytes.
    for kind in [2, 4] {
        for flags in [0, 1, 4] {
            for count in [0, 1, i32::MAX] {
                let lies = i32::MAX.to_be_bytes().repeat(8);
                check_response(Opcode::Result, result(kind, flags, count, lies));
            }
        }
    }
}

#[test]
fn compression_bombs_are_refused_before_they_are_unpacked() {
    // A few bytes that state a plain length of four gigabytes, or of the limit.
    for stated in [u32::MAX, LIMIT as u32] {
        let lz4 = [&stated.to_be_bytes()[..], &[0x1F; 20]].concat();
        let allocated = allocated_by(|| {
            assert!(Compression::Lz4.decompress(&lz4, LIMIT).is_err());
        });
        assert!(allocated < 4096, "{allocated}");
    }
    for stated in [
        &[0xFF, 0xFF, 0xFF, 0xFF, 0x0F][..],
        &[0x80, 0x80, 0x80, 0x80, 0x01],
    ] {
        let snappy = [stated, &[0xFE; 20]].concat();
        let allocated = allocated_by(|| {
            assert!(Compression::Snappy.decompress(&snappy, LIMIT).is_err());
        });
        assert!(allocated < 4096, "{allocated}");
    }
    // Real bombs: a megabyte of zeros, with a limit of a kilobyte.
    for algorithm in Compression::EVERY {
        let bomb = algorithm.compress(&vec![0; 1 << 20]);
        let allocated = allocated_by(|| {
            assert!(algorithm.decompress(&bomb, 1024).is_err());
        });
        assert!(allocated < 4096, "{allocated}");
    }
}

#[test]
fn an_announced_frame_allocates_nothing_like_its_length() {
    let mut decoder = FrameDecoder::new(FrameDirection::Request, LIMIT);
    let mut input = BytesMut::from(&[4, 0, 0, 1, 7, 0x0F, 0xFF, 0xFF, 0xFF][..]);
    let allocated = allocated_by(|| assert_eq!(decoder.decode(&mut input), Ok(None)));
    assert!(allocated <= 128 << 10, "{allocated}");
}
