//! Letters and signs, and the ASCII ones that they resemble: the folding of Lucene's
//! `ASCIIFoldingFilter`, which Cassandra's option `ascii` requires.
//!
//! `ascii_folding.txt` has a line for each text of ASCII: the text, a space, and all characters
//! that fold to it. It was made by asking Lucene 9.7 for each character below U+10000; it folds
//! none above.

use std::collections::HashMap;
use std::sync::LazyLock;

static FOLDS: LazyLock<HashMap<char, &'static str>> = LazyLock::new(|| {
    let lines = include_str!("ascii_folding.txt").lines();
    let folds = lines.filter_map(|line| line.split_once(' '));
    folds
        .flat_map(|(ascii, letters)| letters.chars().map(move |letter| (letter, ascii)))
        .collect()
});

/// The text with each character replaced for which there is ASCII.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for letter in text.chars() {
        match FOLDS.get(&letter) {
            Some(ascii) => folded.push_str(ascii),
            None => folded.push(letter),
        }
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_that_lucene_folds_are_folded_and_all_others_stay() {
        assert_eq!(FOLDS.len(), 1_242);
        assert!(FOLDS.keys().all(|letter| !letter.is_ascii()));
        assert!(FOLDS.values().all(|ascii| ascii.is_ascii()));
        assert_eq!(fold("Straße Ĳssel ÆØÅ"), "Strasse IJssel AEOA");
        assert_eq!(fold("⑴ ⁴ ‼ “ﬃ”"), "(1) 4 !! \"ffi\"");
        assert_eq!(fold("日本 Ж α 𝐀 a\u{301}"), "日本 Ж α 𝐀 a\u{301}");
    }
}
