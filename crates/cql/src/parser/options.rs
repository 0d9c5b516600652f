//! `WITH name = value AND ..`.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::TokenKind;
use super::names::unquoted;
use crate::ast::OptionValue;

/// The most options of a statement, more than any table has. The limit bounds the time of the check
/// for repeats, which compares each option with all before it.
const MAX_OPTIONS: usize = 256;

/// The words that are constants, which may be values in a map without quotes.
const CONSTANTS: [&str; 4] = ["TRUE", "FALSE", "NAN", "INFINITY"];

impl TokenCursor<'_> {
    /// Parses what follows the word `WITH`: one or more options with `AND` between them.
    pub(super) fn options(&mut self) -> Parse<Vec<(String, OptionValue)>> {
        let mut options = Vec::new();
        loop {
            self.option(&mut options)?;
            if !self.eat_word("AND")? {
                return Ok(options);
            }
        }
    }

    /// Parses what [`Self::options`] does, where the values in a map may be lists of numbers, too:
    /// `{'weights': [0.7, 0.3]}`. Each becomes its text, `[0.7, 0.3]`.
    pub(super) fn options_with_lists(&mut self) -> Parse<Vec<(String, OptionValue)>> {
        let mut options = Vec::new();
        loop {
            self.option_of(&mut options, Self::option_map_value_or_list)?;
            if !self.eat_word("AND")? {
                return Ok(options);
            }
        }
    }

    /// Parses one option and adds it to `options`. An option that is there already is refused.
    pub(super) fn option(&mut self, options: &mut Vec<(String, OptionValue)>) -> Parse<()> {
        self.option_of(options, Self::option_map_value)
    }

    fn option_of(
        &mut self,
        options: &mut Vec<(String, OptionValue)>,
        value_in_map: fn(&mut Self) -> Parse<String>,
    ) -> Parse<()> {
        let token = self.current();
        let name = self.name("the name of an option")?;
        if options.len() == MAX_OPTIONS {
            return Err(self.error_at(&token, format!("there are more than {MAX_OPTIONS} options")));
        }
        if options.iter().any(|(known, _)| *known == name) {
            return Err(self.error_at(&token, format!("the option {name} is given twice")));
        }
        self.expect_symbol("=")?;
        let value = if is_symbol(&self.current(), "{") {
            OptionValue::Map(self.option_map_of(value_in_map)?)
        } else {
            OptionValue::Scalar(self.option_scalar()?)
        };
        options.push((name, value));
        Ok(())
    }

    /// Parses `{'key': 'value', ..}`.
    pub(super) fn option_map(&mut self) -> Parse<Vec<(String, String)>> {
        self.option_map_of(Self::option_map_value)
    }

    fn option_map_of(
        &mut self,
        value: fn(&mut Self) -> Parse<String>,
    ) -> Parse<Vec<(String, String)>> {
        self.expect_symbol("{")?;
        let entries = self.separated_until("}", |cursor| {
            let key = cursor.option_scalar()?;
            cursor.expect_symbol(":")?;
            Ok((key, value(cursor)?))
        })?;
        Ok(entries)
    }

    fn option_map_value(&mut self) -> Parse<String> {
        let value = self.current();
        let is_bare = value.kind == TokenKind::Word;
        if is_bare && !CONSTANTS.iter().any(|word| is_word(&value, word)) {
            return Err(self.expected("a string, number or boolean"));
        }
        self.option_scalar()
    }

    fn option_map_value_or_list(&mut self) -> Parse<String> {
        if !self.eat_symbol("[")? {
            return self.option_map_value();
        }
        let values = self.separated_until("]", Self::option_map_value)?;
        Ok(format!("[{}]", values.join(", ")))
    }

    /// Takes a string, number, boolean, UUID, duration, blob or bare word, as text without quotes.
    fn option_scalar(&mut self) -> Parse<String> {
        let negative = is_symbol(&self.current(), "-");
        if negative {
            self.take()?;
        }
        let token = self.current();
        let is_number = matches!(token.kind, TokenKind::Integer | TokenKind::Float);
        let is_scalar = is_number
            || !negative
                && matches!(
                    token.kind,
                    TokenKind::String
                        | TokenKind::DollarString
                        | TokenKind::Word
                        | TokenKind::Uuid
                        | TokenKind::Duration
                        | TokenKind::Blob
                );
        if !is_scalar {
            return Err(self.expected("a string, number, boolean or map of these"));
        }
        self.take()?;
        Ok(match token.kind {
            TokenKind::Word => token.text.to_ascii_lowercase(),
            _ if negative => format!("-{}", token.text),
            _ => unquoted(&token),
        })
    }
}
