//! The binary forms of a search and of its answer, in addition to JSON.
//!
//! They have the content of [`AnnRequest`](crate::types::AnnRequest) and
//! [`AnnResponse`](crate::types::AnnResponse), and take a fraction of the processor time: writing
//! and reading 1,536 numbers as JSON takes longer than a hop of a search through the graph. A
//! service that answers in the binary form also takes binary searches, so a client that has seen
//! one such answer may send them.
//!
//! **A search** is a `POST` to the same path with `Content-Type: application/octet-stream`. The
//! body is the vector and nothing else. Each element is an IEEE 754 `f32` in little-endian order,
//! so the length is four times the number of dimensions. The limit and the filter are in the query
//! string: `?limit=10`, by default 1, and `filter=` with the JSON object of the JSON form,
//! percent-encoded.
//!
//! **An answer** has this form if the request's `Accept` names [`ANSWER_MEDIA_TYPE`]. A later form
//! would have another name. Answers with another status than 200 are as for JSON. Numbers are
//! little-endian, without padding:
//!
//! ```text
//! 4 bytes    rows, u32
//! 2          columns of the primary key, u16
//! 2          columns of values beside the key, u16: zero unless the search has `return_columns`
//! 4 x rows   distances, f32
//! 4 x rows   similarity scores, f32
//! and for each column, partition key first, and then those of values beside it:
//!   2        its type: the id of the option in the CQL native protocol v4, u16
//!   2        length of its name, u16
//!            its name, UTF-8
//!   4 x rows lengths of the values, u32; 2³² - 1 stands for null, which is no key
//!            the values one after the other, each as CQL serialises it
//! ```

mod read;
mod write;

pub use read::{AnswerColumn, AnswerRows, MalformedAnswer, ReturnedColumn};
pub use write::{AnswerWriter, vector};

/// The content type of a search whose body is only the vector.
pub const SEARCH_MEDIA_TYPE: &str = "application/octet-stream";

/// The content type of a binary answer, which names its version.
pub const ANSWER_MEDIA_TYPE: &str = "application/vnd.annulus.neighbours.v1";

/// Bytes of an element of a vector, a distance, a score, or a length.
const WORD_BYTES: usize = 4;

/// Bytes before the distances.
const HEAD_BYTES: usize = 8;

/// The place of the number of returned columns.
const RETURNED_AT: usize = 6;

/// The length that means null.
const NULL: u32 = u32::MAX;

/// The elements of a vector; `None` if the bytes are not a whole number of elements.
pub fn elements(body: &[u8]) -> Option<Vec<f32>> {
    let (words, []) = body.as_chunks::<WORD_BYTES>() else {
        return None;
    };
    Some(words.iter().map(|word| f32::from_le_bytes(*word)).collect())
}
