//! The items of a selection as they are written. The gateway computes some of them itself, and the
//! cluster gets the text of the others.

use cql::parser::selection_text;

/// An item of a selection as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct WrittenItem<'t> {
    /// The text, with its alias.
    pub(super) text: &'t str,
    /// The number of bind markers in the text.
    pub(super) markers: usize,
}

/// The items of a selection, which was parsed before, in their order; `None` if one of them is none
/// by itself.
pub(super) fn written_items(selection: &str) -> Option<Vec<WrittenItem<'_>>> {
    let item = |text| {
        // The item may end with a comment to the end of its line.
        let alone = format!("SELECT {text}\n FROM t");
        let markers = selection_text(&alone).ok()?.markers;
        Some(WrittenItem { text, markers })
    };
    pieces(selection).into_iter().map(item).collect()
}

/// The texts between the commas that are in no brackets.
fn pieces(selection: &str) -> Vec<&str> {
    let bytes = selection.as_bytes();
    let (mut pieces, mut begin, mut depth, mut at) = (Vec::new(), 0, 0_usize, 0);
    while at < bytes.len() {
        if let Some(end) = after_opaque(selection, at) {
            at = end;
            continue;
        }
        match bytes[at] {
            b'(' | b'[' | b'{' => depth += 1,
            b')' | b']' | b'}' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => {
                pieces.push(selection[begin..at].trim());
                begin = at + 1;
            }
            _ => {}
        }
        at += 1;
    }
    pieces.push(selection[begin..].trim());
    pieces
}

/// The end of the literal, quoted name or comment that begins at `at`; `None` if none does. A quote
/// within quotes is doubled, which looks like two of them side by side.
fn after_opaque(text: &str, at: usize) -> Option<usize> {
    const CLOSED: [(&str, &str); 4] = [("'", "'"), ("\"", "\""), ("$$", "$$"), ("/*", "*/")];
    let rest = &text.as_bytes()[at..];
    if rest.starts_with(b"--") || rest.starts_with(b"//") {
        let end = rest.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
        return Some(at + end.unwrap_or(rest.len()));
    }
    let mut closed = CLOSED.iter();
    let (open, close) = closed.find(|(open, _)| rest.starts_with(open.as_bytes()))?;
    let mut ends = rest[open.len()..].windows(close.len());
    let length = ends.position(|window| window == close.as_bytes());
    Some(length.map_or(text.len(), |length| at + open.len() + length + close.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_are_split_at_commas_of_their_own_level() {
        for (selection, items) in [
            ("* ", vec![("*", 0)]),
            ("a, b AS \"x,y\" ", vec![("a", 0), ("b AS \"x,y\"", 0)]),
            (
                "f(a, ?), BM25(body, 'it''s, (well) -- that') AS s, m[:k]\n",
                vec![
                    ("f(a, ?)", 1),
                    ("BM25(body, 'it''s, (well) -- that') AS s", 0),
                    ("m[:k]", 1),
                ],
            ),
            (
                "a /* b, c */, $$d, ' e$$ -- f, g\n, [?, ?]",
                vec![
                    ("a /* b, c */", 0),
                    ("$$d, ' e$$ -- f, g", 0),
                    ("[?, ?]", 2),
                ],
            ),
            ("a - 1 // b, c", vec![("a - 1 // b, c", 0)]),
        ] {
            let found = written_items(selection).expect(selection);
            let found: Vec<_> = found.iter().map(|item| (item.text, item.markers)).collect();
            assert_eq!(found, items, "{selection}");
        }
    }
}
