//! The choice of the grammar for a statement by its first words.

use super::cursor::{Parse, TokenCursor, is_symbol, is_word};
use crate::ast::{AbsentKind, Statement, Truncate};

/// First words of statements that are known but not supported: enough words to name the kind of
/// thing that the statement is about.
const UNSUPPORTED: [&[&str]; 14] = [
    &["CREATE", "FUNCTION"],
    &["CREATE", "OR", "REPLACE", "FUNCTION"],
    &["CREATE", "AGGREGATE"],
    &["CREATE", "OR", "REPLACE", "AGGREGATE"],
    &["CREATE", "TRIGGER"],
    &["CREATE", "MATERIALIZED", "VIEW"],
    &["ALTER", "MATERIALIZED", "VIEW"],
    &["ALTER", "INDEX"],
    &["DROP", "FUNCTION"],
    &["DROP", "AGGREGATE"],
    &["DROP", "TRIGGER"],
    &["DROP", "MATERIALIZED", "VIEW"],
    &["PRUNE", "MATERIALIZED", "VIEW"],
    &["REBUILD", "INDEX"],
];

/// First words of statements that drop what is never there, with their kinds.
const ABSENT: [(&[&str], AbsentKind); 4] = [
    (&["DROP", "FUNCTION"], AbsentKind::Function),
    (&["DROP", "AGGREGATE"], AbsentKind::Aggregate),
    (&["DROP", "TRIGGER"], AbsentKind::Trigger),
    (
        &["DROP", "MATERIALIZED", "VIEW"],
        AbsentKind::MaterializedView,
    ),
];

/// Words that come before the service levels in ScyllaDB's statements about them.
const BEFORE_SERVICE_LEVELS: [&[&str]; 10] = [
    &["CREATE"],
    &["ALTER"],
    &["DROP"],
    &["ATTACH"],
    &["DETACH"],
    &["LIST"],
    &["LIST", "ALL"],
    &["LIST", "ATTACHED"],
    &["LIST", "ALL", "ATTACHED"],
    &["LIST", "EFFECTIVE"],
];
/// The spellings of service levels.
const SERVICE_LEVELS: [&[&str]; 4] = [
    &["SERVICE", "LEVEL"],
    &["SERVICE", "LEVELS"],
    &["SERVICE_LEVEL"],
    &["SERVICE_LEVELS"],
];

impl TokenCursor<'_> {
    pub(super) fn statement(&mut self) -> Parse<Statement> {
        let absent = self.drop_absent()?;
        if absent.is_none()
            && let Some(words) = self.unsupported()
        {
            return self.refused(words);
        }
        let statement = match absent {
            Some(drop) => drop,
            None if self.at_role_statement() => self.role_statement()?,
            None => self.supported_statement()?,
        };
        self.expect_end()?;
        Ok(statement)
    }

    /// A statement that is not carried out, named by these words. The rest is not parsed, but it
    /// must be made of valid tokens.
    pub(super) fn refused(&mut self, words: String) -> Parse<Statement> {
        while self.current().kind != super::lexer::TokenKind::End {
            self.take()?;
        }
        Ok(Statement::Unsupported(words))
    }

    fn unsupported(&self) -> Option<String> {
        let plain = UNSUPPORTED.into_iter().find(|words| self.at_words(words));
        plain
            .map(|words| words.join(" "))
            .or_else(|| self.about_service_levels())
    }

    fn about_service_levels(&self) -> Option<String> {
        let before = BEFORE_SERVICE_LEVELS.into_iter();
        let mut begun = before.filter(|before| self.at_words(before));
        begun.find_map(|before| {
            let whole = SERVICE_LEVELS.map(|levels| [before, levels].concat());
            let here = whole.iter().find(|words| self.at_words(words));
            here.map(|words| words.join(" "))
        })
    }

    /// Parses a DROP with `IF EXISTS` of something that is never there, if it comes here.
    fn drop_absent(&mut self) -> Parse<Option<Statement>> {
        let mut drops = ABSENT.into_iter();
        let found = drops.find(|(words, _)| self.at_words(&[*words, &["IF", "EXISTS"]].concat()));
        let Some((words, kind)) = found else {
            return Ok(None);
        };
        self.expect_words(words)?;
        self.expect_words(&["IF", "EXISTS"])?;
        let mut name = self.qualified_name("a name")?;
        match kind {
            AbsentKind::Function | AbsentKind::Aggregate => {
                if self.eat_symbol("(")? {
                    self.separated_until(")", Self::data_type)?;
                }
            }
            AbsentKind::Trigger => {
                self.expect_word("ON")?;
                name = self.table_name()?;
            }
            AbsentKind::MaterializedView => {}
        }
        Ok(Some(Statement::DropAbsent {
            kind,
            keyspace: name.keyspace,
        }))
    }

    /// Whether these words come here.
    pub(super) fn at_words(&self, words: &[&str]) -> bool {
        is_word(&self.current(), words[0])
            && words[1..].iter().enumerate().all(|(position, word)| {
                self.ahead(position + 1)
                    .is_some_and(|token| is_word(&token, word))
            })
    }

    fn supported_statement(&mut self) -> Parse<Statement> {
        if self.eat_word("SELECT")? {
            return self.select().map(Statement::Select);
        }
        if self.eat_word("INSERT")? {
            return self.insert().map(Statement::Insert);
        }
        if self.eat_word("UPDATE")? {
            return self.update().map(Statement::Update);
        }
        if self.eat_word("DELETE")? {
            return self.delete().map(Statement::Delete);
        }
        if self.eat_word("BEGIN")? {
            return self.batch().map(Statement::Batch);
        }
        if self.eat_word("CREATE")? {
            return self.create();
        }
        if self.eat_word("ALTER")? {
            return self.alter();
        }
        if self.eat_word("DROP")? {
            return self.drop_statement();
        }
        if self.eat_word("TRUNCATE")? {
            return self.truncate();
        }
        if self.eat_word("USE")? {
            if is_symbol(&self.current(), "?") {
                return Err(self.error_here("Bind variables cannot be used for keyspace names"));
            }
            return Ok(Statement::Use {
                keyspace: self.keyspace_name()?,
            });
        }
        if self.eat_word("DESCRIBE")? || self.at_desc()? {
            return self.describe();
        }
        Err(self.unexpected())
    }

    /// Takes `DESC`, the short form of `DESCRIBE`. The test is not remembered, as `DESCRIBE` is
    /// among the words expected already.
    fn at_desc(&mut self) -> Parse<bool> {
        let found = is_word(&self.current(), "DESC");
        if found {
            self.take()?;
        }
        Ok(found)
    }

    fn create(&mut self) -> Parse<Statement> {
        if self.eat_keyspace()? {
            self.create_keyspace()
        } else if self.eat_table()? {
            self.create_table()
        } else if self.eat_word("TYPE")? {
            self.create_type()
        } else if self.eat_word("CUSTOM")? {
            self.expect_word("INDEX")?;
            self.create_index(true)
        } else {
            self.expect_word("INDEX")?;
            self.create_index(false)
        }
    }

    fn alter(&mut self) -> Parse<Statement> {
        if self.eat_keyspace()? {
            self.alter_keyspace()
        } else if self.eat_table()? {
            self.alter_table()
        } else if self.eat_word("TYPE")? {
            self.alter_type()
        } else {
            Err(self.unexpected())
        }
    }

    fn drop_statement(&mut self) -> Parse<Statement> {
        if self.eat_keyspace()? {
            self.drop_keyspace()
        } else if self.eat_table()? {
            self.drop_table()
        } else if self.eat_word("TYPE")? {
            self.drop_type()
        } else {
            self.expect_word("INDEX")?;
            self.drop_index()
        }
    }

    fn truncate(&mut self) -> Parse<Statement> {
        self.eat_table()?;
        Ok(Statement::Truncate(Truncate {
            table: self.table_name()?,
            timeout: self.using(&["TIMEOUT"])?.timeout,
        }))
    }

    /// Takes `KEYSPACE` or `SCHEMA`, which means the same.
    fn eat_keyspace(&mut self) -> Parse<bool> {
        let is_schema = is_word(&self.current(), "SCHEMA");
        if is_schema {
            self.take()?;
        }
        Ok(is_schema || self.eat_word("KEYSPACE")?)
    }

    /// Takes `TABLE` or `COLUMNFAMILY`, which means the same.
    fn eat_table(&mut self) -> Parse<bool> {
        let is_column_family = is_word(&self.current(), "COLUMNFAMILY");
        if is_column_family {
            self.take()?;
        }
        Ok(is_column_family || self.eat_word("TABLE")?)
    }
}
