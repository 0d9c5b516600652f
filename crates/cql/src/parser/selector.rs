//! Selectors: the expressions that a `SELECT` computes of a row, and the arguments of scoring
//! functions.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::{SyntaxToken, TokenKind};
use super::names::is_reserved;
use super::terms::is_constant;
use crate::ast::{
    ArgumentPart, FunctionCall, Operand, ProjectionList, SelectItem, Selector, Term, TimeFunction,
};

/// The functions whose argument is a column or a part of one.
const TIME_FUNCTIONS: [TimeFunction; 3] = [
    TimeFunction::WriteTime,
    TimeFunction::MaxWriteTime,
    TimeFunction::Ttl,
];

impl TokenCursor<'_> {
    /// Parses the part between `SELECT` and `FROM`.
    pub(super) fn projection(&mut self) -> Parse<ProjectionList> {
        if self.eat_symbol("*")? {
            return Ok(ProjectionList::All);
        }
        self.separated(|cursor| {
            let selector = cursor.selector()?;
            let alias = if cursor.eat_word("AS")? {
                Some(cursor.name("an alias")?)
            } else {
                None
            };
            Ok(SelectItem { selector, alias })
        })
        .map(ProjectionList::Items)
    }

    pub(super) fn selector(&mut self) -> Parse<Selector> {
        self.expression(|cursor| cursor.operations(Self::signed_selector))
    }

    /// Parses a selector without operators, which may be negated.
    fn signed_selector(&mut self) -> Parse<Selector> {
        match self.negated()? {
            true => {
                let selector = self.nested(Self::signed_selector)?;
                Ok(Selector::negated(selector))
            }
            false => self.selector_here(),
        }
    }

    fn selector_here(&mut self) -> Parse<Selector> {
        let selector = self.whole_selector()?;
        self.parts_of(selector)
    }

    /// Parses a selector without the parts after it.
    fn whole_selector(&mut self) -> Parse<Selector> {
        let token = self.current();
        let may_be_named = match token.kind {
            TokenKind::Word => !is_constant(&token),
            TokenKind::QuotedName => true,
            _ => false,
        };
        if may_be_named {
            return match self.at_function() {
                true => self.function_selector(),
                false => self.column_name().map(Selector::Column),
            };
        }
        match token.kind {
            TokenKind::Symbol => match token.text {
                "(" if self.at_hint() => self.nested(Self::hinted_selector),
                "(" => self.parenthesised_selector(),
                "[" => self.nested(Self::list_selector),
                "{" => self.nested(Self::braced_selector),
                "*" => Err(self.expected("a column, function or value")),
                _ => self.signed_term().map(Selector::Term),
            },
            TokenKind::End => Err(self.expected("a column, function or value")),
            _ => self.signed_term().map(Selector::Term),
        }
    }

    /// Parses the fields and brackets after a selector: `.field`, `[key]`, `[from..to]`.
    fn parts_of(&mut self, mut selector: Selector) -> Parse<Selector> {
        loop {
            let part = self.part()?;
            if part == ArgumentPart::Whole {
                return Ok(selector);
            }
            selector = part_of(selector, part);
            self.note_part()?;
        }
    }

    /// Parses `(type) selector`. The hint is of the selector without its parts, as in Cassandra:
    /// `(map<text, int>){'a': 1}['a']`.
    fn hinted_selector(&mut self) -> Parse<Selector> {
        self.expect_symbol("(")?;
        let data_type = self.data_type()?;
        self.expect_symbol(")")?;
        let selector = self.nested(|cursor| match cursor.negated()? {
            true => {
                let selector = cursor.nested(Self::signed_selector)?;
                Ok(Selector::negated(selector))
            }
            false => cursor.whole_selector(),
        })?;
        Ok(match selector {
            Selector::Term(term) => Selector::Term(Term::TypeHint {
                data_type,
                term: Box::new(term),
            }),
            selector => Selector::Hint {
                data_type,
                selector: Box::new(selector),
            },
        })
    }

    /// Parses `[a, b]`.
    fn list_selector(&mut self) -> Parse<Selector> {
        self.expect_symbol("[")?;
        let selectors = self.separated_until("]", Self::selector)?;
        Ok(all_or(selectors, Term::List, Selector::List))
    }

    /// Parses `{a, b}` or `{k: v}`.
    fn braced_selector(&mut self) -> Parse<Selector> {
        self.expect_symbol("{")?;
        if self.eat_symbol("}")? {
            return Ok(Selector::Term(Term::Set(Vec::new())));
        }
        let first = self.selector()?;
        if !self.eat_symbol(":")? {
            let mut elements = vec![first];
            if self.eat_symbol(",")? {
                elements.extend(self.separated(Self::selector)?);
            }
            self.expect_symbol("}")?;
            return Ok(all_or(elements, Term::Set, Selector::Set));
        }
        let mut entries = vec![(first, self.selector()?)];
        if self.eat_symbol(",")? {
            entries.extend(self.separated(|cursor| {
                let key = cursor.selector()?;
                cursor.expect_symbol(":")?;
                Ok((key, cursor.selector()?))
            })?);
        }
        self.expect_symbol("}")?;
        let terms: Option<Vec<(Term, Term)>> = entries
            .iter()
            .map(|entry| match entry {
                (Selector::Term(key), Selector::Term(value)) => Some((key.clone(), value.clone())),
                _ => None,
            })
            .collect();
        Ok(match terms {
            Some(terms) => Selector::Term(Term::Map(terms)),
            None => Selector::Entries(entries),
        })
    }

    /// Whether `AS alias` comes `distance` tokens ahead, and not a column of the name `as`.
    pub(super) fn is_alias_at(&self, distance: usize) -> bool {
        let is_name = |token: SyntaxToken<'_>| match token.kind {
            TokenKind::QuotedName => true,
            TokenKind::Word => !is_reserved(token.text),
            _ => false,
        };
        let word = self.ahead(distance);
        word.is_some_and(|word| is_word(&word, "AS"))
            && self.ahead(distance + 1).is_some_and(is_name)
    }

    /// Whether `(type) term` comes here, and not a selector in parentheses.
    fn at_hint(&self) -> bool {
        let is_name = self
            .second()
            .is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedName));
        let is = |distance, symbols: &[&str]| {
            let token = self.ahead(distance);
            token.is_some_and(|token| symbols.iter().any(|symbol| is_symbol(&token, symbol)))
        };
        let is_last = self
            .ahead(3)
            .is_some_and(|token| token.kind == TokenKind::End || is_word(&token, "FROM"))
            || self.is_alias_at(3);
        is_name
            && (is(2, &["<"])
                || is(2, &[")"]) && !is_last && !is(3, &["+", "*", "/", "%", ",", ")"]))
    }

    /// Parses `(selector)`, or a tuple.
    fn parenthesised_selector(&mut self) -> Parse<Selector> {
        self.expect_symbol("(")?;
        let mut selectors = self.separated(Self::selector)?;
        self.expect_symbol(")")?;
        if selectors.len() == 1 && !matches!(selectors[0], Selector::Term(_)) {
            return Ok(selectors.remove(0));
        }
        Ok(all_or(selectors, Term::Tuple, Selector::Tuple))
    }

    pub(super) fn function_selector(&mut self) -> Parse<Selector> {
        let token = self.current();
        let is_native = |name: &str| token.kind == TokenKind::Word && is_word(&token, name);
        let unqualified = self.second().is_some_and(|next| is_symbol(&next, "("));
        let time_function = TIME_FUNCTIONS
            .iter()
            .find(|function| unqualified && is_native(function.name()));
        if let Some(function) = time_function {
            return self.time_of_column(*function);
        }
        if unqualified && is_native("CAST") {
            return self.cast();
        }
        if unqualified && is_native("COUNT") && self.counts_rows() {
            // Three tokens: the name, the parenthesis, and `*` or an integer.
            for _ in 0..3 {
                self.take()?;
            }
            self.expect_symbol(")")?;
            return Ok(Selector::CountAll);
        }
        self.function_of_selectors().map(Selector::Function)
    }

    /// Whether the argument of `count` is `*` or an integer.
    fn counts_rows(&self) -> bool {
        self.ahead(2).is_some_and(|argument| {
            is_symbol(&argument, "*") || argument.kind == TokenKind::Integer
        })
    }

    /// Parses `name(column)`, where the column may have a part after it.
    fn time_of_column(&mut self, function: TimeFunction) -> Parse<Selector> {
        self.take()?;
        self.expect_symbol("(")?;
        let column = self.column_name()?;
        let first = self.part()?;
        let part = self.nested_part(&column, first)?;
        self.expect_symbol(")")?;
        Ok(Selector::Time {
            function,
            column,
            part: Box::new(part),
        })
    }

    /// Parses the parts after the first of a column.
    fn nested_part(&mut self, column: &str, first: ArgumentPart) -> Parse<ArgumentPart> {
        let mut timed = first.clone();
        let mut whole = part_of(Selector::Column(column.to_owned()), first.clone());
        let mut is_nested = false;
        while let next @ (ArgumentPart::Field(_)
        | ArgumentPart::Element(_)
        | ArgumentPart::Slice { .. }) = self.part()?
        {
            // A part of a slice is one of the column, too, if the slice has it.
            if matches!(timed, ArgumentPart::Slice { .. }) {
                timed = next.clone();
            }
            whole = part_of(whole, next);
            is_nested = true;
            self.note_part()?;
        }
        Ok(match is_nested {
            false => first,
            true => ArgumentPart::Nested {
                timed: Box::new(timed),
                whole: Box::new(whole),
            },
        })
    }

    /// Parses `.field`, or what [`Self::elements`] parses.
    fn part(&mut self) -> Parse<ArgumentPart> {
        match self.field_name()? {
            Some(field) => Ok(ArgumentPart::Field(field)),
            None => self.elements(),
        }
    }

    /// Parses `[key]`, `[from..to]`, `[from..]` or `[..to]` after a column; [`ArgumentPart::Whole`]
    /// if none of them comes here.
    fn elements(&mut self) -> Parse<ArgumentPart> {
        if !is_symbol(&self.current(), "[") {
            return Ok(ArgumentPart::Whole);
        }
        self.take()?;
        let from = match self.eat_symbol("..")? {
            true => None,
            false => Some(self.term()?),
        };
        if let Some(key) = &from
            && !self.eat_symbol("..")?
        {
            let element = ArgumentPart::Element(key.clone());
            self.expect_symbol("]")?;
            return Ok(element);
        }
        let is_open = from.is_some() && is_symbol(&self.current(), "]");
        let to = match is_open {
            true => None,
            false => Some(self.term()?),
        };
        self.expect_symbol("]")?;
        Ok(ArgumentPart::Slice { from, to })
    }

    fn cast(&mut self) -> Parse<Selector> {
        self.take()?;
        self.expect_symbol("(")?;
        let selector = Box::new(self.selector()?);
        self.expect_word("AS")?;
        let cql_type = self.cql_type()?;
        self.expect_symbol(")")?;
        Ok(Selector::Cast { selector, cql_type })
    }

    /// Parses the call of a function whose arguments may be columns.
    pub(super) fn function_of_selectors(&mut self) -> Parse<FunctionCall<Selector>> {
        let (keyspace, name) = self.function_name()?;
        Ok(FunctionCall {
            keyspace,
            name,
            arguments: self.separated_until(")", Self::selector)?,
        })
    }
}

/// A part of a selector.
fn part_of(selector: Selector, part: ArgumentPart) -> Selector {
    let whole = Box::new(selector);
    match part {
        ArgumentPart::Whole => *whole,
        ArgumentPart::Field(field) => Selector::Field {
            selector: whole,
            field,
        },
        ArgumentPart::Element(key) => Selector::Element {
            selector: whole,
            key,
        },
        ArgumentPart::Slice { from, to } => Selector::Slice {
            selector: whole,
            from: from.map(Box::new),
            to: to.map(Box::new),
        },
        ArgumentPart::Nested { whole, .. } => *whole,
    }
}

/// A term of the selectors if all of them are terms, and a selector of them otherwise.
fn all_or(
    selectors: Vec<Selector>,
    term: fn(Vec<Term>) -> Term,
    selector: fn(Vec<Selector>) -> Selector,
) -> Selector {
    if selectors
        .iter()
        .all(|selector| matches!(selector, Selector::Term(_)))
    {
        let terms = selectors.into_iter().filter_map(|selector| match selector {
            Selector::Term(term) => Some(term),
            _ => None,
        });
        return Selector::Term(term(terms.collect()));
    }
    selector(selectors)
}
