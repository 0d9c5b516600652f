//! The kinds of statements, as the gateway handles them.
//!
//! One value goes with a statement from its text to its answers:
//!
//! 1. The text of a QUERY or PREPARE shows the kind ([`StatementText::recognise`]).
//! 2. The node's answer to PREPARE adds the facts that only the node knows
//!    ([`ClassifiedStatement::prepared`]): columns of results, names of bind markers. Module
//!    `crate::prepared` remembers the value by the statement's id.
//! 3. A QUERY or EXECUTE is handled by its kind, and so is the node's answer to it. Module
//!    `connection::statements` has a file for each kind.
//!
//! Nearest-neighbour queries have a kind once they are prepared. Before that they never come here:
//! their text becomes a plan, which the gateway carries out or prepares itself
//! (`connection::statements::neighbours`).

use std::sync::Arc;

use cql::error::CqlError;
use cql::wire::{ColumnsMetadata, PreparedResponse};

use crate::catalog::{IndexCatalogSnapshot, IndexStatement, LoggedTable};
use crate::overlay::describe::ParsedDescribe;
use crate::overlay::indexes::IndexesRead;
use crate::overlay::log_read::{LogRead, PreparedLogRead};
use crate::overlay::refusal::TableChangeRefusal;
use crate::overlay::rewrite;
use crate::recognise::{self, StatementVerb, contains_in_any_case};
use crate::ring::RingTable;
use crate::vector_search::AnnStatement;
use crate::writes::{self, PreparedWrite};

/// A statement of a client, by the way in which the gateway handles it.
#[derive(Clone, Debug)]
pub(crate) enum ClassifiedStatement {
    /// The statement passes to the node as it is.
    Plain,
    /// The statement is a USE.
    Use,
    /// The statement may read one of the tables that describe the cluster's nodes. A prepared one
    /// certainly does. The columns of its result are stored for results that come without them;
    /// `None` if it is not prepared.
    RingRead(Option<Arc<ColumnsMetadata>>),
    /// The statement polls a change log. Its columns are empty until it is prepared.
    LogRead(Arc<PreparedLogRead>),
    /// The statement reads which generations of streams there are. It may be answered with an
    /// answer that is some seconds old.
    Generations,
    /// The statement is a prepared nearest-neighbour query.
    Neighbours(Arc<AnnStatement>),
    /// The statement creates or drops a vector index.
    Definition(Arc<IndexStatement>),
    /// The statement reads `system_schema.indexes`. The columns of its result are known if it is
    /// prepared.
    IndexesRead(Arc<IndexesRead>, Option<Arc<ColumnsMetadata>>),
    /// The statement is a DESCRIBE, which may have to show vector indexes.
    Describe(Arc<ParsedDescribe>),
    /// The statement would take away a column that a vector index needs, or the name of one.
    Refused(Arc<TableChangeRefusal>),
    /// The statement truncates a logged table.
    Truncate(Arc<LoggedTable>),
    /// The statement writes to logged tables. The names of its bind markers are empty until it is
    /// prepared.
    Write(Arc<PreparedWrite>),
}

impl ClassifiedStatement {
    /// Adds what the node's answer to PREPARE reports. `answer` decodes it, for the kinds that need
    /// more than the id: columns of other tables may have types that the gateway does not know, and
    /// then there is no answer.
    pub(crate) fn prepared(
        self,
        answer: impl FnOnce() -> Option<PreparedResponse>,
    ) -> ClassifiedStatement {
        let columns = |answer: Option<PreparedResponse>| answer?.result.map(Arc::new);
        match self {
            ClassifiedStatement::RingRead(_) => match columns(answer()) {
                Some(columns) if RingTable::of(&columns).is_some() => {
                    ClassifiedStatement::RingRead(Some(columns))
                }
                _ => ClassifiedStatement::Plain,
            },
            // Without the columns of its result the gateway cannot answer a poll, so it passes.
            ClassifiedStatement::LogRead(poll) => match answer() {
                Some(PreparedResponse {
                    result: Some(columns),
                    result_metadata_id: columns_id,
                    ..
                }) => ClassifiedStatement::LogRead(Arc::new(PreparedLogRead {
                    of: poll.of.clone(),
                    columns: Arc::new(columns),
                    columns_id,
                })),
                _ => ClassifiedStatement::Plain,
            },
            ClassifiedStatement::IndexesRead(read, _) => {
                ClassifiedStatement::IndexesRead(read, columns(answer()))
            }
            // If the names cannot be read, they stay unknown.
            ClassifiedStatement::Write(write) => ClassifiedStatement::Write(match answer() {
                Some(answer) => Arc::new(write.named(answer.bind)),
                None => write,
            }),
            other => other,
        }
    }

    /// Whether the value holds facts that were made of the text or of the node's answer to PREPARE,
    /// and so grows with them. The table of a TRUNCATE belongs to a snapshot.
    pub(crate) fn grows(&self) -> bool {
        match self {
            ClassifiedStatement::Plain
            | ClassifiedStatement::Use
            | ClassifiedStatement::Generations
            | ClassifiedStatement::Truncate(_) => false,
            ClassifiedStatement::RingRead(_)
            | ClassifiedStatement::LogRead(_)
            | ClassifiedStatement::Neighbours(_)
            | ClassifiedStatement::Definition(_)
            | ClassifiedStatement::IndexesRead(..)
            | ClassifiedStatement::Describe(_)
            | ClassifiedStatement::Refused(_)
            | ClassifiedStatement::Write(_) => true,
        }
    }

    /// Whether the value holds facts of an unlimited number that were made of the text. Then a text
    /// that is too long is not prepared.
    pub(crate) fn grows_with_its_text(&self) -> bool {
        matches!(
            self,
            ClassifiedStatement::Definition(_)
                | ClassifiedStatement::IndexesRead(..)
                | ClassifiedStatement::Describe(_)
                | ClassifiedStatement::Refused(_)
                | ClassifiedStatement::Write(_)
        )
    }
}

/// The text of a QUERY or PREPARE, with everything that decides its kind.
pub(crate) struct StatementText<'a> {
    /// The text as it came.
    pub(crate) text: &'a [u8],
    /// The first word of the text.
    pub(crate) verb: StatementVerb,
    /// The keyspace of names without one.
    pub(crate) keyspace: Option<&'a Arc<str>>,
    /// The snapshot that the request is decided by.
    pub(crate) snapshot: &'a IndexCatalogSnapshot,
    /// The keyspace of the definitions; `None` for a gateway that passes everything through.
    pub(crate) definitions: Option<&'a str>,
}

/// A statement that was recognised by its text.
pub(crate) struct RecognisedStatement {
    /// The statement, by its kind.
    pub(crate) statement: ClassifiedStatement,
    /// The text that goes to the node in place of the client's; `None` if that one goes.
    pub(crate) rewritten: Option<String>,
}

impl From<ClassifiedStatement> for RecognisedStatement {
    fn from(statement: ClassifiedStatement) -> RecognisedStatement {
        RecognisedStatement {
            statement,
            rewritten: None,
        }
    }
}

impl StatementText<'_> {
    /// Finds the kind of the statement. Only the first words of most texts are looked at.
    ///
    /// # Errors
    /// If the statement defines a vector index that cannot be, if it writes to a logged table and
    /// the gateway cannot know which rows, or if it names a logged table and does not show which
    /// table it changes.
    pub(crate) fn recognise(&self) -> Result<RecognisedStatement, CqlError> {
        // A text that is no UTF-8 goes to the node, which says what is wrong with it.
        if let Some(definitions) = self.definitions
            && let Ok(text) = str::from_utf8(self.text)
        {
            if self.verb == StatementVerb::Select
                && let Some(rewritten) = rewrite::select(text, definitions)
            {
                return Ok(RecognisedStatement {
                    statement: question_of_a_store(text),
                    rewritten: Some(rewritten),
                });
            }
            if let Some(statement) = self.about_indexes(text)? {
                return Ok(statement.into());
            }
        }
        let statement = match self.verb {
            StatementVerb::Select if recognise::may_read_ring(self.text) => {
                ClassifiedStatement::RingRead(None)
            }
            StatementVerb::Use => ClassifiedStatement::Use,
            StatementVerb::Write | StatementVerb::Truncate if self.snapshot.logs_nothing() => {
                ClassifiedStatement::Plain
            }
            StatementVerb::Truncate => self.truncate()?,
            StatementVerb::Write => self.write()?,
            _ => ClassifiedStatement::Plain,
        };
        Ok(statement.into())
    }

    /// The statement, if it concerns vector indexes; `None` otherwise.
    fn about_indexes(&self, text: &str) -> Result<Option<ClassifiedStatement>, CqlError> {
        let (in_use, snapshot) = (self.keyspace.map(|name| &**name), self.snapshot);
        let holds = |word: &[u8]| contains_in_any_case(text.as_bytes(), word);
        let refused = |refusal| ClassifiedStatement::Refused(Arc::new(refusal));
        let definition = |statement| ClassifiedStatement::Definition(Arc::new(statement));
        Ok(match self.verb {
            StatementVerb::Create if holds(b"index") => {
                let is_named = holds(b"vector_index") || holds(b"fulltext_index");
                let ours = match is_named {
                    true => IndexStatement::read(text, in_use, snapshot)?,
                    false => None,
                };
                match ours {
                    Some(statement) => Some(definition(statement)),
                    None if snapshot.is_empty() => None,
                    None => TableChangeRefusal::of_create(text, in_use, snapshot).map(refused),
                }
            }
            StatementVerb::Drop if !snapshot.is_empty() && holds(b"index") => {
                IndexStatement::read(text, in_use, snapshot)?.map(definition)
            }
            // Only the text decides here, so that a prepared statement need not be prepared again
            // for each new index.
            StatementVerb::Select if holds(b"indexes") => IndexesRead::read(text, in_use)
                .map(|read| ClassifiedStatement::IndexesRead(Arc::new(read), None)),
            StatementVerb::Describe if !snapshot.all_indexes().is_empty() => {
                ParsedDescribe::read(text, in_use)
                    .map(|description| ClassifiedStatement::Describe(Arc::new(description)))
            }
            StatementVerb::Alter
                if !snapshot.is_empty() && (holds(b"drop") || holds(b"rename")) =>
            {
                TableChangeRefusal::of_alter(text, in_use, snapshot).map(refused)
            }
            _ => None,
        })
    }

    /// The kind of a TRUNCATE.
    fn truncate(&self) -> Result<ClassifiedStatement, CqlError> {
        // Cassandra refuses a text that is no UTF-8.
        let Ok(text) = str::from_utf8(self.text) else {
            return Ok(ClassifiedStatement::Plain);
        };
        let in_use = self.keyspace.map(|name| &**name);
        let table = writes::truncated(text, in_use, self.snapshot)?;
        Ok(table.map_or(ClassifiedStatement::Plain, ClassifiedStatement::Truncate))
    }

    /// The kind of a statement whose first word is that of a write.
    fn write(&self) -> Result<ClassifiedStatement, CqlError> {
        // Cassandra refuses a text that is no UTF-8.
        let Ok(text) = str::from_utf8(self.text) else {
            return Ok(ClassifiedStatement::Plain);
        };
        let write = PreparedWrite::read(text, self.keyspace, self.snapshot)?;
        Ok(write.map_or(ClassifiedStatement::Plain, |write| {
            ClassifiedStatement::Write(Arc::new(write))
        }))
    }
}

/// The kind of a SELECT by an index service or the CDC library, which the node gets under another
/// text.
fn question_of_a_store(text: &str) -> ClassifiedStatement {
    match LogRead::read(text) {
        Some(of) => ClassifiedStatement::LogRead(Arc::new(PreparedLogRead {
            of,
            columns: Arc::default(),
            columns_id: None,
        })),
        None if rewrite::reads_generations(text) => ClassifiedStatement::Generations,
        None => ClassifiedStatement::Plain,
    }
}
