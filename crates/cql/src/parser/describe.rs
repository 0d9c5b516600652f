//! `DESCRIBE`, as `cqlsh` sends it to servers since Cassandra 4.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use super::lexer::TokenKind;
use crate::ast::{Describe, DescribeTarget, Statement};

/// Kinds of things that Annulus has none of, as `DESCRIBE kind name` writes them.
const SINGLE: [&str; 2] = ["FUNCTION", "AGGREGATE"];
/// Kinds of things that Annulus has none of, as `DESCRIBE kinds` writes them.
const PLURAL: [&str; 2] = ["FUNCTIONS", "AGGREGATES"];

impl TokenCursor<'_> {
    /// Parses what follows the word `DESCRIBE` or `DESC`.
    pub(super) fn describe(&mut self) -> Parse<Statement> {
        let target = self.describe_target()?;
        let internals = self.eat_word("WITH")?;
        if internals {
            self.expect_word("INTERNALS")?;
        }
        Ok(Statement::Describe(Describe { target, internals }))
    }

    fn describe_target(&mut self) -> Parse<DescribeTarget> {
        // Words such as `cluster` aren't reserved. Before a point they are the name of a keyspace.
        let qualified = self.second().is_some_and(|next| is_symbol(&next, "."));
        if qualified {
            return self.table_name().map(DescribeTarget::Any);
        }
        if self.is_whole_name() {
            return self.any_target();
        }
        if self.eat_word("CLUSTER")? {
            return Ok(DescribeTarget::Cluster);
        }
        if self.eat_word("FULL")? {
            self.expect_word("SCHEMA")?;
            return Ok(DescribeTarget::Schema { full: true });
        }
        if self.eat_word("SCHEMA")? {
            return Ok(DescribeTarget::Schema { full: false });
        }
        if self.eat_word("KEYSPACES")? {
            return Ok(DescribeTarget::Keyspaces);
        }
        if self.eat_word("TABLES")? {
            return Ok(DescribeTarget::Tables);
        }
        if self.eat_word("TYPES")? {
            return Ok(DescribeTarget::Types);
        }
        let only = self.eat_word("ONLY")?;
        if only {
            self.expect_word("KEYSPACE")?;
            return self.described_keyspace(only);
        }
        if self.eat_word("KEYSPACE")? {
            return self.described_keyspace(only);
        }
        if self.eat_word("TABLE")? || self.eat_word("COLUMNFAMILY")? {
            return self.table_name().map(DescribeTarget::Table);
        }
        if self.eat_word("TYPE")? {
            let name = self.qualified_name("a type name")?;
            return Ok(DescribeTarget::Type(name));
        }
        if self.eat_word("INDEX")? {
            let index = self.qualified_name("an index name")?;
            return Ok(DescribeTarget::Index {
                keyspace: index.keyspace,
                name: index.name,
            });
        }
        if self.eat_word("MATERIALIZED")? {
            self.expect_word("VIEW")?;
            return self.nothing("MATERIALIZED VIEW");
        }
        for kind in PLURAL {
            if self.eat_word(kind)? {
                return Ok(DescribeTarget::Empty {
                    kind: kind.to_ascii_lowercase(),
                    name: None,
                });
            }
        }
        for kind in SINGLE {
            if self.eat_word(kind)? {
                return self.nothing(kind);
            }
        }
        self.any_target()
    }

    fn any_target(&mut self) -> Parse<DescribeTarget> {
        self.qualified_name("the name of a keyspace, table, type or index")
            .map(DescribeTarget::Any)
    }

    /// Whether a word that begins a target in other places is a name here, as the statement ends
    /// with it.
    fn is_whole_name(&self) -> bool {
        ["ONLY", "TYPE", "FUNCTION", "AGGREGATE"]
            .iter()
            .any(|word| is_word(&self.current(), word))
            && self.second().is_some_and(|next| {
                next.kind == TokenKind::End || is_symbol(&next, ";") || is_word(&next, "WITH")
            })
    }

    fn described_keyspace(&mut self, only: bool) -> Parse<DescribeTarget> {
        let name = if self.at_name() {
            Some(self.keyspace_name()?)
        } else {
            None
        };
        Ok(DescribeTarget::Keyspace { name, only })
    }

    fn nothing(&mut self, kind: &str) -> Parse<DescribeTarget> {
        Ok(DescribeTarget::Empty {
            kind: kind.to_ascii_lowercase(),
            name: Some(self.qualified_name("a name")?),
        })
    }
}
