//! The relations of `WHERE` and `IF`.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::TokenKind;
use crate::ast::{Comparand, ComparisonSubject, Operator, Relation, Term};
use crate::error::CqlError;

impl TokenCursor<'_> {
    /// Parses one or more relations with `AND` between them.
    pub(super) fn relations(&mut self) -> Parse<Vec<Relation>> {
        let mut relations = vec![self.relation()?];
        while self.eat_word("AND")? {
            relations.push(self.relation()?);
        }
        Ok(relations)
    }

    fn relation(&mut self) -> Parse<Relation> {
        self.nested(|cursor| {
            if is_symbol(&cursor.current(), "(") && !cursor.at_tuple_of_names() {
                cursor.expect_symbol("(")?;
                let relation = cursor.relation()?;
                cursor.expect_symbol(")")?;
                return Ok(relation);
            }
            let subject = cursor.subject()?;
            let (operator, comparand) = match subject {
                ComparisonSubject::Tuple(_) => cursor.comparison_of_tuples()?,
                _ => cursor.comparison()?,
            };
            Ok(Relation {
                subject,
                operator,
                comparand,
            })
        })
    }

    /// Whether `(name, ..` or `(name)` comes here, and not a relation in parentheses.
    fn at_tuple_of_names(&self) -> bool {
        let is_name = self
            .second()
            .is_some_and(|token| matches!(token.kind, TokenKind::Word | TokenKind::QuotedName));
        is_name
            && self
                .ahead(2)
                .is_some_and(|token| is_symbol(&token, ",") || is_symbol(&token, ")"))
    }

    fn subject(&mut self) -> Parse<ComparisonSubject> {
        if is_symbol(&self.current(), "(") {
            return self
                .parenthesised(Self::column_name)
                .map(ComparisonSubject::Tuple);
        }
        if is_word(&self.current(), "TOKEN") && self.at_function() {
            self.take()?;
            return self
                .parenthesised(Self::column_name)
                .map(ComparisonSubject::Token);
        }
        if self.at_function() {
            return self
                .function_of_selectors()
                .map(ComparisonSubject::Function);
        }
        let column = self.column_name()?;
        if let Some(key) = self.element_key()? {
            return Ok(ComparisonSubject::Element { column, key });
        }
        Ok(match self.field_name()? {
            Some(field) => ComparisonSubject::Field { column, field },
            None => ComparisonSubject::Column(column),
        })
    }

    /// Parses the operator after a tuple of columns, and the right side: tuples or markers.
    fn comparison_of_tuples(&mut self) -> Parse<(Operator, Comparand)> {
        if let Some(operator) = self.sign()? {
            return Ok((operator, Comparand::Term(self.tuple_or_marker()?)));
        }
        self.expect_word("IN")?;
        Ok((Operator::In, self.in_values(Self::tuple_or_marker)?))
    }

    fn tuple_or_marker(&mut self) -> Parse<Term> {
        if !self.at_marker() && !is_symbol(&self.current(), "(") {
            return Err(self.expected("a tuple of values or a bind marker"));
        }
        self.term()
    }

    /// Takes an operator of order or equality, if one comes here.
    fn sign(&mut self) -> Parse<Option<Operator>> {
        const SIGNS: [Operator; 6] = [
            Operator::Eq,
            Operator::Lt,
            Operator::LtEq,
            Operator::Gt,
            Operator::GtEq,
            Operator::NotEq,
        ];
        for operator in SIGNS {
            if self.eat_symbol(operator.as_str())? {
                return Ok(Some(operator));
            }
        }
        Ok(None)
    }

    /// Parses the operator and the right side of a relation.
    fn comparison(&mut self) -> Parse<(Operator, Comparand)> {
        if let Some(operator) = self.sign()? {
            return Ok((operator, Comparand::Term(self.term()?)));
        }
        if self.eat_word("IN")? {
            return Ok((Operator::In, self.in_values(Self::term)?));
        }
        if self.eat_word("NOT")? {
            self.expect_word("IN")?;
            return Ok((Operator::NotIn, self.in_values(Self::term)?));
        }
        if self.eat_word("CONTAINS")? {
            let operator = if self.eat_word("KEY")? {
                Operator::ContainsKey
            } else {
                Operator::Contains
            };
            return Ok((operator, Comparand::Term(self.term()?)));
        }
        if self.eat_word("LIKE")? {
            return Ok((Operator::Like, Comparand::Term(self.term()?)));
        }
        if self.eat_word("IS")? {
            self.expect_words(&["NOT", "NULL"])?;
            return Ok((Operator::IsNotNull, Comparand::None));
        }
        if is_symbol(&self.current(), ":") {
            return Err(CqlError::invalid(
                "The operator ':' of Astra is not supported by Annulus: write BM25(column, words) > 0, which needs a \
                 fulltext_index on the column, or keep the words in a set<text> with an index, and use CONTAINS",
            ));
        }
        Err(self.unexpected())
    }

    /// Parses the right side of `IN`: `(a, b)`, `()` or a marker for the whole list.
    fn in_values(&mut self, value: fn(&mut Self) -> Parse<Term>) -> Parse<Comparand> {
        if self.at_marker() {
            return self.term().map(Comparand::Term);
        }
        if !self.eat_symbol("(")? {
            return Err(self.expected("a bind marker"));
        }
        self.separated_until(")", value).map(Comparand::List)
    }
}
