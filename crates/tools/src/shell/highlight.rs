//! Colours of a statement that is being typed.

use super::completion::is_keyword;
use super::tokens::{ShellTokenKind, tokens};

const KEYWORD: &str = "\u{1b}[1;34m";
const TEXT: &str = "\u{1b}[32m";
const NUMBER: &str = "\u{1b}[36m";
const COMMENT: &str = "\u{1b}[2m";
const PLAIN: &str = "\u{1b}[0m";

/// The text with colours, of the same width.
pub(super) fn coloured(text: &str) -> String {
    let mut shown = String::with_capacity(2 * text.len());
    for token in tokens(text, 0) {
        let piece = &text[token.range];
        let colour = match token.kind {
            ShellTokenKind::Word if is_keyword(piece) => KEYWORD,
            ShellTokenKind::Text => TEXT,
            ShellTokenKind::Number => NUMBER,
            ShellTokenKind::Comment => COMMENT,
            _ => {
                shown.push_str(piece);
                continue;
            }
        };
        shown.push_str(colour);
        shown.push_str(piece);
        shown.push_str(PLAIN);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keywords_and_texts_have_colours() {
        let shown = coloured("select a, 'x' -- y");
        assert_eq!(
            shown,
            format!("{KEYWORD}select{PLAIN} a, {TEXT}'x'{PLAIN} {COMMENT}-- y{PLAIN}")
        );
        assert_eq!(coloured("films"), "films");
    }
}
