//! Selectors: the expressions that a `SELECT` computes of a row, and the arguments of scoring
//! functions.

use super::cursor::{Cursor, Parse, is_symbol, is_word};
use super::lexer::Kind;
use super::terms::is_constant;
use crate::ast::{
    FunctionCall, Operand, Part, Projection, SelectItem, Selector, Term, TimeFunction,
};

/// The most fields of user types in a row (`a.b.c`). The tree is walked by recursion later, so its
/// depth must be bounded.
const FIELDS_MAX: usize = 32;

/// The functions whose argument is a column or a part of one.
const TIME_FUNCTIONS: [TimeFunction; 3] = [
    TimeFunction::WriteTime,
    TimeFunction::MaxWriteTime,
    TimeFunction::Ttl,
];

impl Cursor<'_> {
    /// Parses the part between `SELECT` and `FROM`.
    pub(super) fn projection(&mut self) -> Parse<Projection> {
        if self.eat_symbol("*")? {
            return Ok(Projection::All);
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
        .map(Projection::Items)
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
        let token = self.current();
        let may_be_named = match token.kind {
            Kind::Word => !is_constant(&token),
            Kind::QuotedName => true,
            _ => false,
        };
        if !may_be_named {
            return if matches!(token.kind, Kind::End) || is_symbol(&token, "*") {
                Err(self.expected("a column, function or value"))
            } else if is_symbol(&token, "(") && !self.at_hint() {
                self.parenthesised_selector()
            } else {
                self.signed_term().map(Selector::Term)
            };
        }
        if self.at_function() {
            return self.function_selector();
        }
        let column = self.column_name()?;
        let mut selector = match self.elements()? {
            Part::Element(key) => Selector::Element { column, key },
            Part::Slice { from, to } => Selector::Slice {
                column,
                from: from.map(Box::new),
                to: to.map(Box::new),
            },
            Part::Whole | Part::Field(_) => Selector::Column(column),
        };
        let mut depth = 0;
        while let Some(field) = self.field_name()? {
            depth += 1;
            if depth > FIELDS_MAX {
                return Err(self.error_here(format!(
                    "a selector reaches no deeper than {FIELDS_MAX} fields"
                )));
            }
            selector = Selector::Field {
                selector: Box::new(selector),
                field,
            };
        }
        Ok(selector)
    }

    /// Whether `(type) term` stands here, and not a selector in parentheses.
    fn at_hint(&self) -> bool {
        let is_name = self
            .second()
            .is_some_and(|token| matches!(token.kind, Kind::Word | Kind::QuotedName));
        let is = |distance, symbols: &[&str]| {
            let token = self.ahead(distance);
            token.is_some_and(|token| symbols.iter().any(|symbol| is_symbol(&token, symbol)))
        };
        let is_last = self.ahead(3).is_some_and(|token| {
            token.kind == Kind::End || is_word(&token, "FROM") || is_word(&token, "AS")
        });
        is_name
            && (is(2, &["<"])
                || is(2, &[")"]) && !is_last && !is(3, &["+", "*", "/", "%", ",", ")"]))
    }

    /// Parses `(selector)`, or a tuple of values.
    fn parenthesised_selector(&mut self) -> Parse<Selector> {
        self.expect_symbol("(")?;
        let mut selectors = self.separated(Self::selector)?;
        self.expect_symbol(")")?;
        if selectors.len() == 1 && !matches!(selectors[0], Selector::Term(_)) {
            return Ok(selectors.remove(0));
        }
        let terms = selectors.into_iter().map(|selector| match selector {
            Selector::Term(term) => Ok(term),
            _ => {
                Err(self.error_here("a tuple of columns can't be selected: select them one by one"))
            }
        });
        let terms = terms.collect::<Parse<_>>()?;
        Ok(Selector::Term(Term::Tuple(terms)))
    }

    pub(super) fn function_selector(&mut self) -> Parse<Selector> {
        let token = self.current();
        let is_native = |name: &str| token.kind == Kind::Word && is_word(&token, name);
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
        self.ahead(2)
            .is_some_and(|argument| is_symbol(&argument, "*") || argument.kind == Kind::Integer)
    }

    /// Parses `name(column)`, where the column may have a part behind it.
    fn time_of_column(&mut self, function: TimeFunction) -> Parse<Selector> {
        self.take()?;
        self.expect_symbol("(")?;
        let column = self.column_name()?;
        let part = match self.field_name()? {
            Some(field) => Part::Field(field),
            None => self.elements()?,
        };
        self.expect_symbol(")")?;
        Ok(Selector::Time {
            function,
            column,
            part: Box::new(part),
        })
    }

    /// Parses `[key]`, `[from..to]`, `[from..]` or `[..to]` after a column; [`Part::Whole`] if none
    /// of them stands here.
    fn elements(&mut self) -> Parse<Part> {
        if !is_symbol(&self.current(), "[") {
            return Ok(Part::Whole);
        }
        self.take()?;
        let from = match self.eat_symbol("..")? {
            true => None,
            false => Some(self.term()?),
        };
        if let Some(key) = &from
            && !self.eat_symbol("..")?
        {
            let element = Part::Element(key.clone());
            self.expect_symbol("]")?;
            return Ok(element);
        }
        let is_open = from.is_some() && is_symbol(&self.current(), "]");
        let to = match is_open {
            true => None,
            false => Some(self.term()?),
        };
        self.expect_symbol("]")?;
        Ok(Part::Slice { from, to })
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
