//! Terms: constants, bind markers, collections, tuples, function calls and type hints.

use bytes::Bytes;
use value::{Literal, NoDuration, parse_duration};

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::{SyntaxToken, TokenKind};
use super::names::{is_reserved, unquoted};
use crate::ast::{DataType, FunctionCall, Operand, Term};
use crate::error::CqlError;

/// The words that are constants.
const CONSTANTS: [&str; 5] = ["NULL", "TRUE", "FALSE", "NAN", "INFINITY"];

/// Whether the token is a word that is a constant.
pub(super) fn is_constant(token: &SyntaxToken<'_>) -> bool {
    CONSTANTS.iter().any(|constant| is_word(token, constant))
}

/// Whether a word is a duration, such as `P1DT2H`, where a term is expected.
pub(super) fn is_duration_word(token: &SyntaxToken<'_>) -> bool {
    token.kind == TokenKind::Word
        && token.text.starts_with('P')
        && parse_duration(token.text) != Err(NoDuration::Form)
}

/// The duration that a token means, which is a word or a [`TokenKind::Duration`]. As in Cassandra,
/// a wrong value is an invalid request, not a syntax error.
fn duration(token: &SyntaxToken<'_>, negative: bool) -> Parse<Literal> {
    let (months, days, nanoseconds) = parse_duration(token.text).map_err(|error| match error {
        NoDuration::Value(why) => CqlError::invalid(why),
        NoDuration::Form => CqlError::invalid(format!("'{}' is no duration", token.text)),
    })?;
    let sign = if negative { -1 } else { 1 };
    Ok(Literal::Duration {
        months: sign * months,
        days: sign * days,
        nanoseconds: i64::from(sign) * nanoseconds,
    })
}

impl TokenCursor<'_> {
    /// Whether a bind marker begins here.
    pub(super) fn at_marker(&self) -> bool {
        let token = self.current();
        is_symbol(&token, "?") || is_symbol(&token, ":")
    }

    /// Parses a term, in which operators may occur.
    pub(super) fn term(&mut self) -> Parse<Term> {
        self.expression(|cursor| cursor.operations(Self::signed_term))
    }

    /// Parses a term without operators, which may be negated.
    pub(super) fn signed_term(&mut self) -> Parse<Term> {
        match self.negated()? {
            true => {
                let term = self.nested(Self::signed_term)?;
                Ok(Term::negated(term))
            }
            false => self.term_here(),
        }
    }

    fn term_here(&mut self) -> Parse<Term> {
        let token = self.current();
        match token.kind {
            TokenKind::Symbol => self.symbol_term(&token),
            TokenKind::Word if is_constant(&token) => self.constant(),
            TokenKind::Word if self.at_cast() => self.cast_term(),
            TokenKind::Word | TokenKind::QuotedName if self.at_function() => {
                let (keyspace, name) = self.function_name()?;
                Ok(Term::Function(FunctionCall {
                    keyspace,
                    name,
                    arguments: self.separated_until(")", Self::term)?,
                }))
            }
            TokenKind::Word if is_duration_word(&token) => self.literal(false).map(Term::Literal),
            TokenKind::Word if is_reserved(token.text) => Err(self.expected("a value")),
            TokenKind::Word => Err(self.expected_with_remedy(
                "a value",
                &format!("the name '{}'", token.text),
                "a string is written in single quotes",
            )),
            TokenKind::QuotedName => Err(self.expected_with_remedy(
                "a value",
                &format!("the name {}", token.text),
                "a string is written in single quotes",
            )),
            TokenKind::End => Err(self.expected("a value")),
            _ => self.literal(false).map(Term::Literal),
        }
    }

    fn at_cast(&self) -> bool {
        is_word(&self.current(), "CAST") && self.second().is_some_and(|next| is_symbol(&next, "("))
    }

    /// Parses `CAST(term AS type)`: a call of the function that casts to the type.
    fn cast_term(&mut self) -> Parse<Term> {
        self.take()?;
        self.expect_symbol("(")?;
        let argument = self.nested(Self::term)?;
        self.expect_word("AS")?;
        let token = self.current();
        let DataType::Simple(to) = self.data_type()? else {
            return Err(self.error_at(&token, "a value is cast to a type without parts alone"));
        };
        self.expect_symbol(")")?;
        Ok(Term::Function(FunctionCall {
            keyspace: None,
            name: format!("cast_as_{to}"),
            arguments: vec![argument],
        }))
    }

    fn symbol_term(&mut self, token: &SyntaxToken<'_>) -> Parse<Term> {
        match token.text {
            "?" => {
                self.take()?;
                self.marker(None).map(Term::Marker)
            }
            ":" => {
                self.take()?;
                let name = self.marker_name()?;
                self.marker(Some(name)).map(Term::Marker)
            }
            "[" => {
                self.take()?;
                self.separated_until("]", Self::term).map(Term::List)
            }
            "{" => self.set_or_map(),
            "(" => self.hint_or_tuple(),
            "-" => {
                self.take()?;
                self.literal(true).map(Term::Literal)
            }
            _ => Err(self.expected("a value")),
        }
    }

    /// Takes the name of a bind marker after its colon. Reserved words are names here, as they can
    /// mean nothing else.
    fn marker_name(&mut self) -> Parse<String> {
        let token = self.current();
        if token.kind == TokenKind::Word {
            self.take()?;
            return Ok(token.text.to_ascii_lowercase());
        }
        self.name("the name of a bind marker")
    }

    fn constant(&mut self) -> Parse<Term> {
        if is_word(&self.current(), "NULL") {
            self.take()?;
            return Ok(Term::Null);
        }
        self.literal(false).map(Term::Literal)
    }

    /// Takes a constant other than null. `negative` says whether a minus sign was taken before it.
    fn literal(&mut self, negative: bool) -> Parse<Literal> {
        let token = self.current();
        let sign = if negative { "-" } else { "" };
        let literal = match token.kind {
            TokenKind::Integer => Literal::Integer(format!("{sign}{}", token.text)),
            TokenKind::Float => Literal::Float(format!("{sign}{}", token.text)),
            TokenKind::Duration => duration(&token, negative)?,
            TokenKind::Word if is_word(&token, "NAN") => Literal::Float("NaN".to_owned()),
            TokenKind::Word if is_word(&token, "INFINITY") => {
                Literal::Float(format!("{sign}Infinity"))
            }
            TokenKind::Word if is_duration_word(&token) => duration(&token, negative)?,
            _ if negative => return Err(self.expected("a number or duration after '-'")),
            TokenKind::Word if is_word(&token, "TRUE") => Literal::Boolean(true),
            TokenKind::Word if is_word(&token, "FALSE") => Literal::Boolean(false),
            TokenKind::String | TokenKind::DollarString => Literal::String(unquoted(&token)),
            TokenKind::Uuid => match uuid::Uuid::try_parse(token.text) {
                Ok(uuid) => Literal::Uuid(uuid),
                Err(_) => return Err(self.expected("a UUID")),
            },
            TokenKind::Blob => Literal::Blob(self.blob(&token)?),
            _ => return Err(self.expected("a constant")),
        };
        self.take()?;
        Ok(literal)
    }

    fn blob(&self, token: &SyntaxToken<'_>) -> Parse<Bytes> {
        let digits = &token.text.as_bytes()[2..];
        let nibble = |digit: u8| match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => digit - b'A' + 10,
        };
        let (pairs, []) = digits.as_chunks::<2>() else {
            return Err(self.error_here(format!(
                "a blob is written as pairs of hexadecimal digits, but this one has {} digits",
                digits.len()
            )));
        };
        Ok(pairs
            .iter()
            .map(|[high, low]| nibble(*high) << 4 | nibble(*low))
            .collect())
    }

    fn set_or_map(&mut self) -> Parse<Term> {
        self.expect_symbol("{")?;
        if self.eat_symbol("}")? {
            return Ok(Term::Set(Vec::new()));
        }
        if self.at_field() {
            let fields = self.separated(Self::field)?;
            self.expect_symbol("}")?;
            return Ok(Term::UserType(fields));
        }
        let first = self.term()?;
        if !self.eat_symbol(":")? {
            let mut elements = vec![first];
            if self.eat_symbol(",")? {
                elements.extend(self.separated(Self::term)?);
            }
            self.expect_symbol("}")?;
            return Ok(Term::Set(elements));
        }
        let mut entries = vec![(first, self.term()?)];
        if self.eat_symbol(",")? {
            entries.extend(self.separated(|cursor| {
                let key = cursor.term()?;
                cursor.expect_symbol(":")?;
                Ok((key, cursor.term()?))
            })?);
        }
        self.expect_symbol("}")?;
        Ok(Term::Map(entries))
    }

    /// Whether `field:` comes here, and not the key of a map.
    fn at_field(&self) -> bool {
        let token = self.current();
        let is_name = match token.kind {
            TokenKind::Word => !is_constant(&token) && !is_duration_word(&token),
            kind => kind == TokenKind::QuotedName,
        };
        is_name && self.second().is_some_and(|next| is_symbol(&next, ":"))
    }

    /// Parses `field: term`.
    fn field(&mut self) -> Parse<(String, Term)> {
        let name = self.name("the name of a field")?;
        self.expect_symbol(":")?;
        Ok((name, self.term()?))
    }

    /// Parses `(type) term` or `(term, ..)`. The token after the parenthesis decides which it is.
    pub(super) fn hint_or_tuple(&mut self) -> Parse<Term> {
        self.expect_symbol("(")?;
        if self.at_type() && !self.at_function() && !is_duration_word(&self.current()) {
            let data_type = self.data_type()?;
            self.expect_symbol(")")?;
            return Ok(Term::TypeHint {
                data_type,
                term: Box::new(self.nested(Self::signed_term)?),
            });
        }
        let elements = self.separated(Self::term)?;
        self.expect_symbol(")")?;
        Ok(Term::Tuple(elements))
    }

    /// Parses an integer or a bind marker, as after `LIMIT`.
    pub(super) fn integer_or_marker(&mut self) -> Parse<Term> {
        let token = self.current();
        let is_integer = token.kind == TokenKind::Integer
            || is_symbol(&token, "-")
                && self
                    .second()
                    .is_some_and(|next| next.kind == TokenKind::Integer);
        if is_integer || self.at_marker() {
            self.signed_term()
        } else {
            Err(self.expected("an integer or a bind marker"))
        }
    }
}
