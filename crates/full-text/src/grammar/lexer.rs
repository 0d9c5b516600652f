//! The words and signs of a query, with their places.

use super::TextQueryError;

/// A word or sign of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct QueryLexeme {
    /// Its first character's place in the query.
    pub begin: usize,
    /// The place after its last character.
    pub end: usize,
    /// Its kind and content.
    pub kind: LexemeKind,
}

/// The kinds of words and signs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum LexemeKind {
    /// A word without its escapes.
    Word(String),
    /// A text in quotation marks, without them and its escapes.
    Phrase(String),
    /// `(`
    Open,
    /// `)`
    Close,
    /// AND
    And,
    /// OR
    Or,
    /// NOT
    Not,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `~` with the number that follows, which may be empty.
    Tilde(String),
    /// `^` with the number that follows, which may be empty.
    Caret(String),
}

impl LexemeKind {
    /// The sign or word as an error names it.
    pub(super) fn name(&self) -> &str {
        match self {
            LexemeKind::Word(word) => word,
            LexemeKind::Phrase(_) => "\"",
            LexemeKind::Open => "(",
            LexemeKind::Close => ")",
            LexemeKind::And => "AND",
            LexemeKind::Or => "OR",
            LexemeKind::Not => "NOT",
            LexemeKind::Plus => "+",
            LexemeKind::Minus => "-",
            LexemeKind::Star => "*",
            LexemeKind::Tilde(_) => "~",
            LexemeKind::Caret(_) => "^",
        }
    }
}

/// Reads one word or sign after another.
pub(super) struct QueryLexer {
    characters: Vec<char>,
    at: usize,
}

impl QueryLexer {
    pub(super) fn new(text: &str) -> QueryLexer {
        QueryLexer {
            characters: text.chars().collect(),
            at: 0,
        }
    }

    /// The next word or sign, or nothing at the query's end.
    pub(super) fn lexeme(&mut self) -> Result<Option<QueryLexeme>, TextQueryError> {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        let begin = self.at;
        let Some(first) = self.peek() else {
            return Ok(None);
        };
        // A sign is one character, after which its content may come.
        self.at += 1;
        let kind = match first {
            '(' => LexemeKind::Open,
            ')' => LexemeKind::Close,
            '+' => LexemeKind::Plus,
            '-' => LexemeKind::Minus,
            '*' => LexemeKind::Star,
            '~' => LexemeKind::Tilde(self.number()),
            '^' => LexemeKind::Caret(self.number()),
            '"' => LexemeKind::Phrase(self.phrase(begin)?),
            _ => {
                self.at = begin;
                self.word()?
            }
        };
        Ok(Some(QueryLexeme {
            begin,
            end: self.at,
            kind,
        }))
    }

    /// The place of the next character.
    pub(super) fn place(&self) -> usize {
        self.at
    }

    fn peek(&self) -> Option<char> {
        self.characters.get(self.at).copied()
    }

    /// The digits and points that follow.
    fn number(&mut self) -> String {
        let rest = self.characters[self.at..].iter();
        let number = rest.take_while(|character| matches!(character, '0'..='9' | '.'));
        let number: String = number.collect();
        self.at += number.len();
        number
    }

    /// The text up to the closing quotation mark; the opening one is at `begin`.
    fn phrase(&mut self, begin: usize) -> Result<String, TextQueryError> {
        let mut text = String::new();
        loop {
            match self.peek() {
                None => {
                    let fault = "this quotation mark is not closed";
                    return Err(TextQueryError::new(begin, fault));
                }
                Some('"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some('\\') => text.push(self.escaped()?),
                Some(character) => {
                    text.push(character);
                    self.at += 1;
                }
            }
        }
    }

    fn word(&mut self) -> Result<LexemeKind, TextQueryError> {
        let mut word = String::new();
        let mut is_escaped = false;
        let mut after = None;
        while let Some(character) = self.peek() {
            match character {
                '\\' => {
                    word.push(self.escaped()?);
                    is_escaped = true;
                }
                '(' | ')' | '"' | '*' | '~' | '^' => {
                    after = Some(character);
                    break;
                }
                _ if character.is_whitespace() => break,
                _ => {
                    word.push(character);
                    self.at += 1;
                }
            }
        }
        let is_changed = matches!(after, Some('*' | '~' | '^'));
        Ok(match word.as_str() {
            _ if is_escaped || is_changed => LexemeKind::Word(word),
            "AND" => LexemeKind::And,
            "OR" => LexemeKind::Or,
            "NOT" => LexemeKind::Not,
            _ => LexemeKind::Word(word),
        })
    }

    /// The character after the backslash at this place.
    fn escaped(&mut self) -> Result<char, TextQueryError> {
        let Some(character) = self.characters.get(self.at + 1) else {
            let fault = "nothing follows this backslash; write '\\\\' for one in a word";
            return Err(TextQueryError::new(self.at, fault));
        };
        self.at += 2;
        Ok(*character)
    }
}
