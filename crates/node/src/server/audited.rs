//! The notes of a request for the audit log: made while the request is worked on, and written
//! before its answer leaves.

use std::net::SocketAddr;
use std::sync::Arc;

use client_memory::{Account, Charge};
use cql::ast::Statement;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{Consistency, Request};
use uuid::Uuid;

use super::masked::masked;
use super::prepared::Prepared;
use crate::audit::{AuditLog, Category, Entry, Place, Subject};

/// The most bytes of a statement's text. Its type, its keyspace and its table are told in any case.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The bytes of a line beside the text.
const LINE_BYTES: usize = 512;

/// The bytes of lines that are not charged. What a request is charged anyway covers them, about.
const UNCHARGED_BYTES: usize = 2 << 10;

/// The notes of a request for the audit log; `None` without a log.
pub(super) struct Audited<'a>(Option<Notes<'a>>);

struct Notes<'a> {
    log: &'a AuditLog,
    role: Option<Arc<str>>,
    source: SocketAddr,
    is_preparation: bool,
    consistency: Option<Consistency>,
    /// The id of a batch, by the time of the request.
    batch: Option<Uuid>,
    events: Vec<Event>,
    /// The bytes of the events' lines, about.
    bytes: usize,
    charge: Charge,
}

/// A statement of the request.
struct Event {
    subject: Subject,
    text: String,
    /// The statement, if it was prepared.
    prepared: Option<Arc<Prepared>>,
    times: u32,
}

impl<'a> Audited<'a> {
    /// No notes, as there is no log.
    pub fn nothing() -> Audited<'a> {
        Audited(None)
    }

    /// Begins the notes of a request. `batch` makes the id of a batch.
    pub fn begin(
        log: &'a AuditLog,
        (source, role): (SocketAddr, Option<Arc<str>>),
        request: &Request,
        memory: &Account,
        batch: impl FnOnce() -> Uuid,
    ) -> Audited<'a> {
        let consistency = match request {
            Request::Query { parameters, .. } | Request::Execute { parameters, .. } => {
                Some(parameters.consistency)
            }
            Request::Batch(batch) => Some(batch.consistency),
            _ => None,
        };
        Audited(Some(Notes {
            log,
            role,
            source,
            is_preparation: matches!(request, Request::Prepare { .. }),
            consistency,
            batch: matches!(request, Request::Batch(_)).then(batch),
            events: Vec::new(),
            bytes: 0,
            charge: memory.charge(),
        }))
    }

    /// Notes a statement before it is carried out, or a text that is none (`None`). `keyspace` is
    /// the one of names without any.
    ///
    /// # Errors
    /// ServerError if it has to be logged and can't be, and Overloaded if there is no memory for
    /// its line.
    pub fn note(
        &mut self,
        text: &str,
        statement: Option<&Statement>,
        keyspace: Option<&str>,
    ) -> Result<(), CqlError> {
        match &mut self.0 {
            Some(notes) => notes.note(text, statement, keyspace, None),
            None => Ok(()),
        }
    }

    /// Notes that a prepared statement is executed, as [`Audited::note`].
    ///
    /// # Errors
    /// As [`Audited::note`].
    pub fn note_prepared(&mut self, prepared: &Arc<Prepared>) -> Result<(), CqlError> {
        let Some(notes) = &mut self.0 else {
            return Ok(());
        };
        if let Some(last) = notes.events.last_mut()
            && let Some(known) = &last.prepared
            && Arc::ptr_eq(known, prepared)
        {
            last.times = last.times.saturating_add(1);
            return Ok(());
        }
        let statement = Some(&prepared.parsed.statement);
        let keyspace = prepared.keyspace.as_deref();
        notes.note(&prepared.text, statement, keyspace, Some(prepared))
    }

    /// Writes the lines of the request, which succeeded or failed with an error of this kind.
    ///
    /// # Errors
    /// ServerError if they can't be written now.
    pub async fn finish(self, error: Option<&ErrorKind>) -> Result<(), CqlError> {
        let Some(notes) = self.0 else {
            return Ok(());
        };
        let lines = notes.lines(error);
        match lines.is_empty() {
            true => Ok(()),
            false => notes.log.write(lines, notes.charge).await,
        }
    }
}

impl Notes<'_> {
    fn note(
        &mut self,
        text: &str,
        statement: Option<&Statement>,
        keyspace: Option<&str>,
        prepared: Option<&Arc<Prepared>>,
    ) -> Result<(), CqlError> {
        let mut subject = match statement {
            Some(statement) => Subject::of(statement, keyspace),
            None => Subject::unreadable(),
        };
        if self.is_preparation && statement.is_some() {
            (subject.category, subject.kind) = (Category::Prepare, "PREPARE_STATEMENT");
        }
        if subject.places.is_empty() {
            subject.places.push(Place::default());
        }
        let filter = self.log.filter();
        let mut places = subject.places.iter();
        let is_kept = places.any(|place| self.keeps(subject.category, place));
        // A refusal for want of a right is known only later.
        if !is_kept && (self.role.is_none() || !filter.has(Category::Auth)) {
            return Ok(());
        }
        if is_kept {
            self.log.check()?;
        }
        let mut shown = masked(text, TEXT_BYTES_MAX, statement).into_owned();
        if text.len() > TEXT_BYTES_MAX {
            shown.push_str("...");
        }
        self.bytes += subject.places.len() * (2 * shown.len() + LINE_BYTES);
        if self.bytes > UNCHARGED_BYTES && self.charge.resize(self.bytes).is_err() {
            return Err(CqlError::new(
                ErrorKind::Overloaded,
                "Overloaded: there is no memory for the lines of this request in the audit log",
            ));
        }
        self.events.push(Event {
            subject,
            text: shown,
            prepared: prepared.cloned(),
            times: 1,
        });
        Ok(())
    }

    fn keeps(&self, category: Category, place: &Place) -> bool {
        let keyspace = place.keyspace.as_deref();
        let filter = self.log.filter();
        filter.keeps(category, self.role.as_deref(), keyspace)
    }

    fn lines(&self, error: Option<&ErrorKind>) -> Vec<u8> {
        let mut lines = Vec::new();
        let is_refused = error == Some(&ErrorKind::Unauthorized);
        let is_refused = is_refused && self.log.filter().has(Category::Auth);
        let source = self.source.to_string();
        let batch = self.batch.map(|id| id.to_string());
        let consistency = self.consistency.map(|level| level.to_string());
        for event in &self.events {
            let subject = &event.subject;
            for place in &subject.places {
                let entry = match is_refused {
                    true => Entry::new(Category::Auth, "UNAUTHORIZED_ATTEMPT"),
                    false if self.keeps(subject.category, place) => {
                        Entry::new(subject.category, subject.kind)
                    }
                    false => continue,
                };
                let entry = Entry {
                    role: self.role.as_deref(),
                    source: &source,
                    batch: batch.as_deref(),
                    keyspace: place.keyspace.as_deref(),
                    table: place.table.as_deref(),
                    consistency: consistency.as_deref(),
                    statement: Some(&event.text),
                    times: (event.times > 1).then_some(event.times),
                    error: error.map(ErrorKind::name),
                    ..entry
                };
                entry.put(&mut lines);
            }
        }
        lines
    }
}
