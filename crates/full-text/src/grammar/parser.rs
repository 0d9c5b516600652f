//! The parts of a query, as they are written.

use super::lexer::{LexemeKind, QueryLexeme, QueryLexer};
use super::{
    BOOST_MAX, DEPTH_MAX, DISTANCE_MAX, FUZZY_WORDS_MAX, SLOP_MAX, TextQueryError, WORDS_MAX,
};

/// A word, phrase or group.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QueryPart {
    /// Its first character's place in the query.
    pub position: usize,
    pub boost: f32,
    pub kind: PartKind,
}

/// The kinds of parts. Their words are not analysed yet.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum PartKind {
    Word(String),
    Prefix(String),
    Fuzzy { word: String, distance: u8 },
    Phrase { text: String, slop: u32 },
    Group(PartList),
}

/// Parts by how they count.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct PartList {
    pub must: Vec<QueryPart>,
    pub should: Vec<QueryPart>,
    pub must_not: Vec<QueryPart>,
}

/// How a part counts in its list.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PartSign {
    Must,
    Should,
    MustNot,
}

impl PartList {
    fn push(&mut self, sign: PartSign, part: QueryPart) {
        match sign {
            PartSign::Must => self.must.push(part),
            PartSign::Should => self.should.push(part),
            PartSign::MustNot => self.must_not.push(part),
        }
    }

    fn is_empty(&self) -> bool {
        self.must.is_empty() && self.should.is_empty() && self.must_not.is_empty()
    }
}

/// Reads a query's text.
pub(super) fn parse(text: &str) -> Result<PartList, TextQueryError> {
    let mut lexer = QueryLexer::new(text);
    let next = lexer.lexeme()?;
    let mut parser = PartParser {
        lexer,
        next,
        words: 0,
        fuzzy_words: 0,
    };
    let list = parser.list(0)?;
    match parser.next {
        Some(close) => {
            let fault = "this parenthesis closes none";
            Err(TextQueryError::new(close.begin, fault))
        }
        None => Ok(list),
    }
}

struct PartParser {
    lexer: QueryLexer,
    next: Option<QueryLexeme>,
    words: usize,
    fuzzy_words: usize,
}

impl PartParser {
    /// Items up to a closing parenthesis or the end.
    fn list(&mut self, depth: usize) -> Result<PartList, TextQueryError> {
        let mut list = PartList::default();
        while !matches!(self.kind(), None | Some(LexemeKind::Close)) {
            let (sign, part) = self.item(depth)?;
            list.push(sign, part);
            if let Some(or) = self.take_if(|kind| *kind == LexemeKind::Or)? {
                self.require_operand(&or)?;
            }
        }
        Ok(list)
    }

    /// A part, or several with AND between them.
    fn item(&mut self, depth: usize) -> Result<(PartSign, QueryPart), TextQueryError> {
        let (mut sign, mut part) = self.signed(depth)?;
        if self.kind() != Some(&LexemeKind::And) {
            return Ok((sign, part));
        }
        let position = part.position;
        let mut list = PartList::default();
        loop {
            let sign_in_list = match sign {
                PartSign::MustNot => PartSign::MustNot,
                PartSign::Must | PartSign::Should => PartSign::Must,
            };
            list.push(sign_in_list, part);
            let Some(and) = self.take_if(|kind| *kind == LexemeKind::And)? else {
                break;
            };
            self.require_operand(&and)?;
            (sign, part) = self.signed(depth)?;
        }
        let group = QueryPart {
            position,
            boost: 1.0,
            kind: PartKind::Group(list),
        };
        Ok((PartSign::Should, group))
    }

    fn signed(&mut self, depth: usize) -> Result<(PartSign, QueryPart), TextQueryError> {
        let sign = match self.kind() {
            Some(LexemeKind::Plus) => PartSign::Must,
            Some(LexemeKind::Minus | LexemeKind::Not) => PartSign::MustNot,
            _ => return Ok((PartSign::Should, self.operand(depth)?)),
        };
        if let Some(lexeme) = self.take()? {
            self.require_operand(&lexeme)?;
            let is_word = lexeme.kind == LexemeKind::Not;
            let is_apart = self
                .next
                .as_ref()
                .is_some_and(|next| next.begin != lexeme.end);
            if is_apart && !is_word {
                let name = lexeme.kind.name();
                let rule = "must come directly before a word";
                let fault = format!("'{name}' {rule}; as text it is \\{name}");
                return Err(TextQueryError::new(lexeme.begin, fault));
            }
        }
        Ok((sign, self.operand(depth)?))
    }

    /// A word, phrase or group with the signs that change it.
    fn operand(&mut self, depth: usize) -> Result<QueryPart, TextQueryError> {
        let Some(lexeme) = self.take()? else {
            let place = self.lexer.place();
            return Err(TextQueryError::new(place, "the query ends too early"));
        };
        let position = lexeme.begin;
        let mut end = lexeme.end;
        let kind = match lexeme.kind {
            LexemeKind::Word(word) => self.changed_word(word, position, &mut end)?,
            LexemeKind::Phrase(text) => self.changed_phrase(text, position, &mut end)?,
            LexemeKind::Open => PartKind::Group(self.group(position, depth, &mut end)?),
            kind => return Err(unexpected(&kind, position)),
        };
        let is_group = matches!(kind, PartKind::Group(_));
        let mut is_changed = !is_group && end != lexeme.end;
        let boost = match self.take_at(end, |kind| matches!(kind, LexemeKind::Caret(_)))? {
            Some(caret) => {
                end = caret.end;
                is_changed = true;
                boost(&caret)?
            }
            None => 1.0,
        };
        self.require_end(end, is_changed)?;
        Ok(QueryPart {
            position,
            boost,
            kind,
        })
    }

    /// The list in parentheses, of which the opening one has been taken.
    fn group(
        &mut self,
        position: usize,
        depth: usize,
        end: &mut usize,
    ) -> Result<PartList, TextQueryError> {
        if depth == DEPTH_MAX {
            let fault = format!("a query has at most {DEPTH_MAX} parentheses in one another");
            return Err(TextQueryError::new(position, fault));
        }
        let list = self.list(depth + 1)?;
        let Some(close) = self.take()? else {
            let fault = "this parenthesis is not closed";
            return Err(TextQueryError::new(position, fault));
        };
        *end = close.end;
        match list.is_empty() {
            true => Err(TextQueryError::new(position, "these parentheses are empty")),
            false => Ok(list),
        }
    }

    fn changed_word(
        &mut self,
        word: String,
        position: usize,
        end: &mut usize,
    ) -> Result<PartKind, TextQueryError> {
        self.count_word(position)?;
        let is_change = |kind: &LexemeKind| matches!(kind, LexemeKind::Star | LexemeKind::Tilde(_));
        let Some(change) = self.take_at(*end, is_change)? else {
            return Ok(PartKind::Word(word));
        };
        *end = change.end;
        let LexemeKind::Tilde(number) = &change.kind else {
            return Ok(PartKind::Prefix(word));
        };
        self.fuzzy_words += 1;
        if self.fuzzy_words > FUZZY_WORDS_MAX {
            let fault = format!("a query has at most {FUZZY_WORDS_MAX} words with '~'");
            return Err(TextQueryError::new(position, fault));
        }
        let distance = match number.is_empty() {
            true => Some(DISTANCE_MAX),
            false => number.parse::<u8>().ok(),
        };
        let distance = distance.filter(|distance| *distance <= DISTANCE_MAX);
        let distance = distance.ok_or_else(|| {
            let rule = format!("edits are a whole number of 0 to {DISTANCE_MAX}");
            let fault = format!("'~{number}' after a word: {rule}");
            TextQueryError::new(change.begin, fault)
        })?;
        Ok(PartKind::Fuzzy { word, distance })
    }

    fn changed_phrase(
        &mut self,
        text: String,
        position: usize,
        end: &mut usize,
    ) -> Result<PartKind, TextQueryError> {
        self.count_word(position)?;
        let tilde = self.take_at(*end, |kind| matches!(kind, LexemeKind::Tilde(_)))?;
        let slop = match &tilde {
            None => 0,
            Some(tilde) => {
                *end = tilde.end;
                slop(tilde)?
            }
        };
        Ok(PartKind::Phrase { text, slop })
    }

    fn count_word(&mut self, position: usize) -> Result<(), TextQueryError> {
        self.words += 1;
        match self.words > WORDS_MAX {
            true => Err(too_many_words(position)),
            false => Ok(()),
        }
    }

    /// The kind of the next word or sign.
    fn kind(&self) -> Option<&LexemeKind> {
        self.next.as_ref().map(|lexeme| &lexeme.kind)
    }

    fn take(&mut self) -> Result<Option<QueryLexeme>, TextQueryError> {
        let Some(lexeme) = self.next.take() else {
            return Ok(None);
        };
        self.next = self.lexer.lexeme()?;
        Ok(Some(lexeme))
    }

    fn take_if(
        &mut self,
        is_taken: impl FnOnce(&LexemeKind) -> bool,
    ) -> Result<Option<QueryLexeme>, TextQueryError> {
        match self.kind().is_some_and(is_taken) {
            true => self.take(),
            false => Ok(None),
        }
    }

    /// Takes the next sign if it comes directly at a place.
    fn take_at(
        &mut self,
        place: usize,
        is_taken: impl FnOnce(&LexemeKind) -> bool,
    ) -> Result<Option<QueryLexeme>, TextQueryError> {
        match self.next.as_ref().is_some_and(|next| next.begin == place) {
            true => self.take_if(is_taken),
            false => Ok(None),
        }
    }

    /// Checks that something follows an operator.
    fn require_operand(&self, operator: &QueryLexeme) -> Result<(), TextQueryError> {
        let name = operator.kind.name();
        match self.kind() {
            None | Some(LexemeKind::Close) => {
                let fault = format!("no word, phrase or group follows '{name}'");
                Err(TextQueryError::new(operator.begin, fault))
            }
            Some(_) => Ok(()),
        }
    }

    /// Checks that no sign comes directly after a part that could be meant to change it; and after
    /// one that is changed, nothing that could be meant as more of the word.
    fn require_end(&self, end: usize, is_changed: bool) -> Result<(), TextQueryError> {
        let Some(next) = self.next.as_ref().filter(|next| next.begin == end) else {
            return Ok(());
        };
        match next.kind {
            LexemeKind::Star | LexemeKind::Tilde(_) | LexemeKind::Caret(_) => {
                Err(unexpected(&next.kind, end))
            }
            LexemeKind::Close => Ok(()),
            _ if is_changed => {
                let fault = "a space must follow '*', '~' and '^' with their numbers";
                Err(TextQueryError::new(end, fault))
            }
            _ => Ok(()),
        }
    }
}

/// The error of a query with too many words, of which the one at a place is the first too many.
pub(super) fn too_many_words(position: usize) -> TextQueryError {
    let fault = format!("a query has at most {WORDS_MAX} words");
    TextQueryError::new(position, fault)
}

fn unexpected(kind: &LexemeKind, position: usize) -> TextQueryError {
    let name = kind.name();
    let fault = match kind {
        LexemeKind::Star => "'*' must directly follow the beginning of a word".to_owned(),
        LexemeKind::Tilde(_) => "'~' must directly follow a word or a phrase".to_owned(),
        LexemeKind::Caret(_) => "'^' must directly follow a word, a phrase or a group".to_owned(),
        _ => format!("'{name}' is where a word, a phrase or a group must be"),
    };
    let fault = format!("{fault}; as text it is \\{name}");
    TextQueryError::new(position, fault)
}

fn slop(tilde: &QueryLexeme) -> Result<u32, TextQueryError> {
    let number = match &tilde.kind {
        LexemeKind::Tilde(number) => number.as_str(),
        _ => "",
    };
    let slop = number.parse::<u32>().ok().filter(|slop| *slop <= SLOP_MAX);
    slop.ok_or_else(|| {
        let rule = format!("a slop is a whole number of 0 to {SLOP_MAX}");
        let fault = format!("'~{number}' after a phrase: {rule}");
        TextQueryError::new(tilde.begin, fault)
    })
}

fn boost(caret: &QueryLexeme) -> Result<f32, TextQueryError> {
    let number = match &caret.kind {
        LexemeKind::Caret(number) => number.as_str(),
        _ => "",
    };
    let boost = number.parse::<f32>().ok();
    let boost = boost.filter(|boost| *boost > 0.0 && *boost <= BOOST_MAX);
    boost.ok_or_else(|| {
        let fault = format!("'^{number}': a boost is a number above 0, and at most {BOOST_MAX}");
        TextQueryError::new(caret.begin, fault)
    })
}
