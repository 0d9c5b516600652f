//! Estimates of the memory that statements take. A test compares them with the allocator's count.
//!
//! A text is small compared with the plan that is made of it. A bind marker of two characters
//! becomes a term, a column with three names, and a second form of this column for clients. So the
//! estimates count words, values and signs instead of characters.

use crate::planner::StatementPlan;

/// The memory that a word, value or sign takes in the parsed form and in the plan, in bytes.
const TOKEN_BYTES: usize = 360;

/// The most memory that a word, value or sign takes while it is parsed, in a vector that grows. In
/// bytes.
const TOKEN_PARSED_BYTES: usize = 320;

/// The memory that a column of the answer or a marker's column takes, in the plan and in the form
/// for clients together. In bytes.
const COLUMN_BYTES: usize = 640;

/// The memory that even the shortest statement takes, in bytes.
const STATEMENT_BYTES: usize = 4 << 10;

/// The memory that a prepared statement takes, in bytes.
pub(super) fn of_prepared(text: &str, plan: &StatementPlan) -> usize {
    let columns = plan.variables().len() + plan.width();
    STATEMENT_BYTES + 3 * text.len() + TOKEN_BYTES * tokens(text) + COLUMN_BYTES * columns
}

/// The memory that a text takes while it is parsed and planned, in bytes.
pub(super) fn while_parsed(text: &str) -> usize {
    2 * text.len() + TOKEN_PARSED_BYTES * tokens(text)
}

/// The number of words, values and signs, about. A string counts once, as does a UUID. A list or
/// tuple counts twice, since it has a vector of its own. Commas do not count.
fn tokens(text: &str) -> usize {
    let mut count = 0;
    let mut in_word = false;
    let mut word_start = 0;
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate() {
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
            b'?' | b'=' | b'<' | b'>' | b'*' | b'+' | b'/' | b'%' => {
                count += 1;
                in_word = false;
            }
            b'-' if in_word && is_within_uuid(&text.as_bytes()[word_start..at]) => {}
            b'-' => {
                count += 1;
                in_word = false;
            }
            _ if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | 0x80..) => {
                if !in_word {
                    word_start = at;
                    count += 1;
                }
                in_word = true;
            }
            _ => in_word = false,
        }
    }
    count
}

/// Whether a dash after this part of a word may belong to a UUID.
fn is_within_uuid(part: &[u8]) -> bool {
    let is_digit = |byte: &u8| byte.is_ascii_hexdigit() || *byte == b'-';
    matches!(part.len(), 8 | 13 | 18 | 23) && part.iter().all(is_digit)
}

#[cfg(test)]
mod tests;
