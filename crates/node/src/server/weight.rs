//! What statements take in memory, by an estimate that a test holds against the allocator.
//!
//! A text is small beside what is made of it: a bind marker of two characters becomes a term, a column with three names, and
//! the same column once more as clients are told of it. So words, values and signs are counted, not characters.

use crate::query::Plan;

/// What a word, value or sign takes in the parsed form and in the plan, in bytes.
const TOKEN_BYTES: usize = 350;

/// The most that one takes while it is parsed, in a vector that grows.
const TOKEN_PARSED_BYTES: usize = 320;

/// What a column of the answer, or one that a marker stands for, takes in the plan and as clients are told of it, in bytes.
const COLUMN_BYTES: usize = 640;

/// What even the shortest statement takes, in bytes.
const STATEMENT_BYTES: usize = 4 << 10;

/// What a prepared statement takes, in bytes.
pub(super) fn of_prepared(text: &str, plan: &Plan) -> usize {
    let columns = plan.variables().len() + plan.result_columns().map_or(0, |columns| columns.len());
    STATEMENT_BYTES + 2 * text.len() + TOKEN_BYTES * tokens(text) + COLUMN_BYTES * columns
}

/// What a text takes while it is parsed and planned, in bytes.
pub(super) fn while_parsed(text: &str) -> usize {
    2 * text.len() + TOKEN_PARSED_BYTES * tokens(text)
}

/// Words, values and signs, about: a string counts once, a list or tuple twice as it has a vector of its own, commas not at all.
fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut in_word = false;
    let mut quote = None;
    for byte in text.bytes() {
        if let Some(open) = quote {
            if byte == open {
                quote = None;
            }
            continue;
        }
        match byte {
            b'\'' | b'"' => {
                quote = Some(byte);
                count += 1;
                in_word = false;
            }
            b'(' | b'[' | b'{' => {
                count += 2;
                in_word = false;
            }
            b'?' | b'=' | b'<' | b'>' | b'*' => {
                count += 1;
                in_word = false;
            }
            _ if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-' | 0x80..) => {
                count += usize::from(!in_word);
                in_word = true;
            }
            _ => in_word = false,
        }
    }
    count
}

#[cfg(test)]
mod tests;
