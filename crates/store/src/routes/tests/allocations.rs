//! Tests how much memory a search takes from the allocator. The limits are today's values with
//! little room, so that any growth is noticed and has to be justified.
//!
//! The allocations of one thread are counted. The service, its search and the client of these tests
//! share that thread, and the client allocates nothing.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use store_api::VectorSearch;
use store_api::binary::{ANSWER_MEDIA_TYPE, SEARCH_MEDIA_TYPE, vector};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;

thread_local! {
    static TAKEN: Cell<Taken> = const { Cell::new(Taken { blocks: 0, bytes: 0 }) };
}

/// The blocks and bytes that were requested from the allocator.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
struct Taken {
    blocks: usize,
    bytes: usize,
}

impl Taken {
    fn so_far() -> Taken {
        TAKEN.get()
    }

    fn since(self, before: Taken) -> Taken {
        Taken {
            blocks: self.blocks - before.blocks,
            bytes: self.bytes - before.bytes,
        }
    }
}

fn count(bytes: usize) {
    // Nothing is counted while a thread ends, as its counter is destroyed.
    let _ = TAKEN.try_with(|taken| {
        let Taken {
            blocks,
            bytes: before,
        } = taken.get();
        taken.set(Taken {
            blocks: blocks + 1,
            bytes: before + bytes,
        });
    });
}

struct Counting;

// SAFETY: every call is passed to the system's allocator unchanged, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size());
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size);
        // SAFETY: the caller keeps the contract of this function, which is the same.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

const DIMENSIONS: usize = 1536;
const K: usize = 10;

/// Enough rows that an index has codes and a graph.
const ROWS: u32 = 1200;

fn row(number: u32) -> Vec<f32> {
    // No two rows are equal: rows of one vector share its place, which costs a search some blocks.
    let shift = number as f32 / 4096.0;
    let element = |at: usize| ((number as usize * 31 + at * 7) % 97) as f32 - 48.0 + shift;
    (0..DIMENSIONS).map(element).collect()
}

async fn service() -> Service {
    let service = Service::start(100).await;
    service.engine.set_connected(true);
    let mut identity = identity("idx");
    identity.options.vector().dimensions = DIMENSIONS;
    identity.keys.partition[0].cql_type = CqlType::Bigint;
    let index = service.add(identity);
    service.engine.first_discovery();
    service.engine.serving(&index);
    for id in 0..ROWS {
        let key = i64::from(id).to_be_bytes();
        let key = index.identity.keys.encode([key.as_slice()]);
        index.content.keys_mut().insert(id, key);
    }
    for id in 0..ROWS {
        insert(&index.content, id, &row(id));
    }
    service
}

fn request(query: &str, content_type: &str, accept: &str, body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /api/v1/indexes/ks/idx/ann{query} HTTP/1.1\r\nHost: localhost\r\nContent-Type: {content_type}\r\n\
         Accept: {accept}\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// Returns the memory that one search takes after many others.
async fn taken(service: &Service, request: &[u8]) -> Taken {
    let mut stream = TcpStream::connect(service.listening.address())
        .await
        .unwrap();
    let mut buffer = vec![0; 1 << 16];
    let mut least = None;
    // The smallest of several counts, as now and then a buffer grows or a timer fires.
    for _ in 0..40 {
        let before = Taken::so_far();
        stream.write_all(request).await.unwrap();
        let length = stream.read(&mut buffer).await.unwrap();
        let taken = Taken::so_far().since(before);
        assert!(
            buffer.starts_with(b"HTTP/1.1 200 OK"),
            "{:?}",
            &buffer[..length]
        );
        if least.is_none_or(|least| taken.bytes < Taken::bytes(least)) {
            least = Some(taken);
        }
    }
    least.expect("some searches")
}

/// Returns the memory that one search by a call within the process takes, the keys of its answer
/// included.
async fn taken_here(service: &Service, query: &[f32]) -> Taken {
    let stores = service.local();
    let mut least = None;
    for _ in 0..40 {
        let before = Taken::so_far();
        let found = stores
            .ann("ks", "idx", VectorSearch::new(query.to_vec(), K), &["p0"])
            .await;
        let taken = Taken::so_far().since(before);
        assert_eq!(found.unwrap().keys.len(), K);
        if least.is_none_or(|least| taken.bytes < Taken::bytes(least)) {
            least = Some(taken);
        }
    }
    least.expect("some searches")
}

impl Taken {
    fn bytes(self) -> usize {
        self.bytes
    }
}

#[tokio::test]
async fn a_search_takes_few_blocks_and_copies_its_vector_once() {
    let service = service().await;
    let query: Vec<f32> = row(7).iter().map(|element| element / 97.0).collect();
    let binary = request(
        &format!("?limit={K}"),
        SEARCH_MEDIA_TYPE,
        ANSWER_MEDIA_TYPE,
        &vector(&query),
    );
    let body = serde_json::json!({"vector": query, "limit": K}).to_string();
    let json = request("", "application/json", "application/json", body.as_bytes());
    let (binary, json) = (taken(&service, &binary).await, taken(&service, &json).await);
    println!(
        "binary {binary:?}; JSON {json:?}, of a body of {} bytes",
        body.len()
    );
    // The bytes are the socket's data, one copy of the vector, and the memory of the index's
    // search.
    let vector_bytes = 4 * DIMENSIONS;
    assert!(binary.blocks <= 26, "{binary:?}");
    assert!(binary.bytes <= 3 * vector_bytes, "{binary:?}");
    let local = taken_here(&service, &query).await;
    println!("in the same process {local:?}");
    // Each key of the answer is a list of its own.
    assert!(local.blocks <= 26 + K, "{local:?}");
    assert!(local.bytes <= 2 * vector_bytes, "{local:?}");
    // A body that takes several reads is put together once. How many it takes is up to the system.
    assert!(json.blocks <= 60, "{json:?}");
    assert!(json.bytes <= 3 * body.len() + 3 * vector_bytes, "{json:?}");
}
