//! Operators between values: products before sums, and from left to right.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::TokenKind;
use super::terms::{is_constant, is_duration_word};
use crate::ast::{ArithmeticOperation, Operand};

impl TokenCursor<'_> {
    /// Parses operands with operators between them. `operand` parses one operand.
    pub(super) fn operations<T: Operand>(
        &mut self,
        operand: fn(&mut Self) -> Parse<T>,
    ) -> Parse<T> {
        let mut sum = self.product(operand)?;
        while (T::HOLDS_COLUMNS || !self.at_assigned_column())
            && let Some(operation) = self.operator(false)?
        {
            let right = self.product(operand)?;
            sum = T::operated(operation, sum, right);
        }
        Ok(sum)
    }

    fn product<T: Operand>(&mut self, operand: fn(&mut Self) -> Parse<T>) -> Parse<T> {
        let mut product = operand(self)?;
        while let Some(operation) = self.operator(true)? {
            let right = operand(self)?;
            product = T::operated(operation, product, right);
        }
        Ok(product)
    }

    /// Takes an operator of one of the two kinds, if one comes here.
    fn operator(&mut self, is_product: bool) -> Parse<Option<ArithmeticOperation>> {
        let token = self.current();
        let found = ArithmeticOperation::ALL.into_iter().find(|operation| {
            operation.is_product() == is_product && is_symbol(&token, operation.symbol())
        });
        if found.is_some() {
            self.note_operator()?;
            self.take()?;
        }
        Ok(found)
    }

    /// Takes a minus sign, unless it belongs to a constant. Returns whether one was taken.
    pub(super) fn negated(&mut self) -> Parse<bool> {
        if !is_symbol(&self.current(), "-") {
            return Ok(false);
        }
        let is_signed_constant = self.second().is_some_and(|next| {
            matches!(
                next.kind,
                TokenKind::Integer | TokenKind::Float | TokenKind::Duration
            ) || is_word(&next, "NAN")
                || is_word(&next, "INFINITY")
                || is_duration_word(&next)
        });
        if is_signed_constant {
            return Ok(false);
        }
        self.note_operator()?;
        self.take()?;
        Ok(true)
    }

    /// Whether `+ column` comes here, as after the value in `c = [1] + c`.
    fn at_assigned_column(&self) -> bool {
        let Some(next) = self.second().filter(|_| is_symbol(&self.current(), "+")) else {
            return false;
        };
        let is_name = next.kind == TokenKind::QuotedName
            || next.kind == TokenKind::Word && !is_constant(&next) && !is_duration_word(&next);
        let is_called = self
            .ahead(2)
            .is_some_and(|token| is_symbol(&token, "(") || is_symbol(&token, "."));
        is_name && !is_called
    }
}
