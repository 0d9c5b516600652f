//! Cuts input into statements, however it comes in: a statement ends with a semicolon outside of
//! quotes, comments and batches, and a command of the shell with its line.

use super::commands;
use super::tokens::{ShellTokenKind, tokens};

/// A statement or a command of the shell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct StatementPiece {
    /// The text from its first token on, without the semicolon.
    pub text: String,
    /// The line of the input on which it begins, from 1.
    pub line: usize,
}

/// Input that becomes statements. It grows at its end, and statements are taken from its start.
#[derive(Debug, Default)]
pub(super) struct StatementSplitter {
    text: String,
    /// The place up to which tokens are read.
    read: usize,
    /// The line breaks before `text`.
    lines: usize,
    /// Facts about the statement whose tokens are read.
    begun: StatementOutline,
}

/// Facts about a statement of which the first tokens are read.
#[derive(Debug, Default)]
struct StatementOutline {
    /// The place of the first token; `None` before it.
    start: Option<usize>,
    /// Whether it is a command of the shell, which ends with its line.
    is_command: bool,
    /// Whether it is a batch whose end is not read yet.
    is_batch: bool,
    /// The word read last, in capitals.
    last_word: String,
}

impl StatementSplitter {
    /// Appends input. It may end anywhere.
    pub(super) fn push(&mut self, input: &str) {
        self.text.push_str(input);
    }

    /// Whether something is begun and has no end yet, after all complete statements are taken.
    pub(super) fn has_begun(&self) -> bool {
        self.begun.start.is_some() || !self.text[self.read..].trim().is_empty()
    }

    /// Takes the next complete statement.
    pub(super) fn take(&mut self) -> Option<StatementPiece> {
        self.take_up_to_end(false)
    }

    /// Takes the next statement where no more input comes: the last one needs no semicolon.
    pub(super) fn take_last(&mut self) -> Option<StatementPiece> {
        let piece = self.take_up_to_end(true);
        piece.or_else(|| self.cut(self.text.len(), self.text.len()))
    }

    fn take_up_to_end(&mut self, is_all: bool) -> Option<StatementPiece> {
        loop {
            let token = tokens(&self.text, self.read).next()?;
            let touches_end = token.range.end == self.text.len();
            let may_grow = touches_end
                && !matches!(
                    token.kind,
                    ShellTokenKind::Semicolon | ShellTokenKind::LineBreak
                );
            if may_grow && !is_all {
                return None;
            }
            self.read = token.range.end;
            let (start, end) = (token.range.start, token.range.end);
            match token.kind {
                ShellTokenKind::Blank => {}
                ShellTokenKind::Comment => {
                    // A comment without an end has swallowed the rest.
                    if !token.is_closed {
                        self.begun.start.get_or_insert(start);
                    }
                }
                ShellTokenKind::LineBreak if self.begun.is_command => {
                    return self.cut(start, end);
                }
                ShellTokenKind::LineBreak => {}
                ShellTokenKind::Semicolon if self.begun.is_batch => {}
                ShellTokenKind::Semicolon => {
                    if let Some(piece) = self.cut(start, end) {
                        return Some(piece);
                    }
                }
                ShellTokenKind::Word
                | ShellTokenKind::QuotedName
                | ShellTokenKind::Text
                | ShellTokenKind::Number
                | ShellTokenKind::Symbol => self.note(start, end),
            }
        }
    }

    /// Takes note of a token of the statement.
    fn note(&mut self, start: usize, end: usize) {
        let word = self.text[start..end].to_ascii_uppercase();
        if self.begun.start.is_none() {
            self.begun.start = Some(start);
            self.begun.is_command = commands::begins_command(&word);
            self.begun.is_batch = word == "BEGIN";
        }
        let is_end = matches!(
            (self.begun.last_word.as_str(), word.as_str()),
            ("APPLY", "BATCH") | ("COMMIT", "TRANSACTION")
        );
        if is_end {
            self.begun.is_batch = false;
        }
        self.begun.last_word = word;
    }

    /// Cuts the statement that ends at `end` off the input, of which `next` is the first place
    /// after it.
    fn cut(&mut self, end: usize, next: usize) -> Option<StatementPiece> {
        let begun = std::mem::take(&mut self.begun);
        let piece = begun.start.map(|start| StatementPiece {
            text: self.text[start..end].trim_end().to_owned(),
            line: self.lines + breaks(&self.text[..start]) + 1,
        });
        self.lines += breaks(&self.text[..next]);
        self.text.drain(..next);
        self.read = 0;
        piece
    }
}

fn breaks(text: &str) -> usize {
    text.bytes().filter(|byte| *byte == b'\n').count()
}

/// Whether a text that ends with a line break holds nothing that is only begun.
pub(super) fn is_complete(line: &str) -> bool {
    let mut splitter = StatementSplitter::default();
    splitter.push(line);
    splitter.push("\n");
    while splitter.take().is_some() {}
    !splitter.has_begun()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pieces: &[&str]) -> Vec<(usize, String)> {
        let mut splitter = StatementSplitter::default();
        let mut found = Vec::new();
        for piece in pieces {
            splitter.push(piece);
            while let Some(piece) = splitter.take() {
                found.push((piece.line, piece.text));
            }
        }
        while let Some(piece) = splitter.take_last() {
            found.push((piece.line, piece.text));
        }
        found
    }

    const ALL: &str = "-- first;\nUSE ks;\n\nINSERT INTO t (a) VALUES ('x;''y'); SELECT *\nFROM t /* ; */\n;\
        BEGIN BATCH\n INSERT INTO t (a) VALUES ($$;$$);\n DELETE FROM t WHERE a = 1;\nAPPLY BATCH;\n\
        EXPAND ON\n\\d films\n.import a.csv --table ks.t\nSELECT 1";

    #[test]
    fn statements_end_at_semicolons_and_commands_at_lines() {
        let found = of(&[ALL]);
        let expected = [
            (2, "USE ks"),
            (4, "INSERT INTO t (a) VALUES ('x;''y')"),
            (4, "SELECT *\nFROM t /* ; */"),
            (
                6,
                "BEGIN BATCH\n INSERT INTO t (a) VALUES ($$;$$);\n DELETE FROM t WHERE a = 1;\nAPPLY BATCH",
            ),
            (10, "EXPAND ON"),
            (11, "\\d films"),
            (12, ".import a.csv --table ks.t"),
            (13, "SELECT 1"),
        ];
        let expected = expected.map(|(line, text)| (line, text.to_owned()));
        assert_eq!(found, expected);
    }

    #[test]
    fn pieces_of_any_size_give_the_same_statements() {
        let whole = of(&[ALL]);
        for size in [1, 2, 3, 7] {
            let characters: Vec<char> = ALL.chars().collect();
            let pieces: Vec<String> = characters
                .chunks(size)
                .map(|c| c.iter().collect())
                .collect();
            let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
            assert_eq!(of(&pieces), whole, "{size}");
        }
    }

    #[test]
    fn blanks_comments_and_semicolons_are_no_statements() {
        assert!(of(&[" ;; -- a;\n /* b; */ ;\n"]).is_empty());
        assert!(of(&[""]).is_empty());
        let open = of(&["SELECT 1; SELECT 'a;\n b"]);
        assert_eq!(open[1], (1, "SELECT 'a;\n b".to_owned()));
    }

    #[test]
    fn a_line_is_complete_with_its_semicolon() {
        for complete in [
            "",
            "  ",
            "SELECT 1;",
            "a; b;",
            "\\q",
            "exit",
            "EXPAND ON",
            "-- x",
            "desc tables",
            "SELECT 1; -- x",
        ] {
            assert!(is_complete(complete), "{complete}");
        }
        for begun in [
            "SELECT 1",
            "SELECT ';",
            "a; b",
            "/* x",
            "BEGIN BATCH x; y;",
            "SELECT -- ;",
        ] {
            assert!(!is_complete(begun), "{begun}");
        }
    }
}
