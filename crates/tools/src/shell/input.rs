//! Statements that come from a file or a pipe, in pieces of whole lines.

use std::io::{BufRead, BufReader, Read};

use tokio::sync::mpsc;

/// The pieces of an input, or the error that ends it.
pub(super) type InputPieces = mpsc::Receiver<Result<String, String>>;

/// The bytes that are read at once.
const READ_BYTES: usize = 1 << 16;

/// Reads an input on a thread of its own: a pipe may be silent for long, and the driver's tasks
/// must go on meanwhile.
///
/// # Errors
/// If the system has no thread for it.
pub(super) fn pieces(input: impl Read + Send + 'static) -> std::io::Result<InputPieces> {
    let (sender, pieces) = mpsc::channel(2);
    let thread = std::thread::Builder::new().name("input".to_owned());
    thread.spawn(move || read(input, |piece| sender.blocking_send(piece).is_ok()))?;
    Ok(pieces)
}

/// Passes whole lines on, as many as there are at once, so that a program that writes a statement
/// and waits gets its answer. `take` returns whether it wants more.
fn read(input: impl Read, take: impl Fn(Result<String, String>) -> bool) {
    let mut input = BufReader::with_capacity(READ_BYTES, input);
    let mut begun: Vec<u8> = Vec::new();
    loop {
        let found = match input.fill_buf() {
            Ok(found) => found,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => {
                take(Err(error.to_string()));
                return;
            }
        };
        let length = found.len();
        begun.extend_from_slice(found);
        input.consume(length);
        let whole = match length {
            0 => begun.len(),
            _ => begun
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1),
        };
        let rest = begun.split_off(whole);
        let lines = std::mem::replace(&mut begun, rest);
        let piece = String::from_utf8(lines).map_err(|_| "the text is not UTF-8".to_owned());
        let is_wrong = piece.is_err();
        if piece.as_ref().is_ok_and(String::is_empty) {
            if length == 0 {
                return;
            }
            continue;
        }
        if !take(piece) || is_wrong || length == 0 {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    fn of(input: &[u8]) -> Vec<Result<String, String>> {
        let found = RefCell::new(Vec::new());
        read(input, |piece| {
            found.borrow_mut().push(piece);
            true
        });
        found.into_inner()
    }

    #[test]
    fn the_last_line_needs_no_break() {
        let found = of("a;\nb;\n\u{e9}".as_bytes());
        assert_eq!(found, [Ok("a;\nb;\n".to_owned()), Ok("\u{e9}".to_owned())]);
        assert!(of(b"").is_empty());
    }

    #[test]
    fn characters_are_not_cut() {
        let long = "\u{e9}".repeat(READ_BYTES) + "\n" + &"x\n".repeat(READ_BYTES);
        let found: String = of(long.as_bytes())
            .into_iter()
            .map(Result::unwrap)
            .collect();
        assert_eq!(found, long);
    }

    #[test]
    fn bytes_that_are_no_text_are_an_error() {
        assert!(of(b"a\n\xff\n").last().unwrap().is_err());
    }
}
