//! The notes of a request for the audit log: made while the request is worked on, and written
//! before its answer leaves.

use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

use client_memory::{MemoryAccount, MemoryCharge};
use cql::ast::Statement;
use cql::error::{CqlError, ErrorKind};
use cql::wire::{Consistency, Request};
use uuid::Uuid;

use super::counts::CountedKind;
use super::prepared::ExecutableStatement;
use super::redaction::redacted;
use crate::security::audit::{
    AuditLog, EventCategory, LoggedEvent, LoggedTarget, StatementSubject, category_of,
};
use crate::statement::LoggedInRole;

/// The most bytes of a statement's text. Its type, its keyspace and its table are logged in any
/// case.
const TEXT_BYTES_MAX: usize = 8 << 10;

/// The mark after a text that is cut.
const CUT: &str = "...";

/// The bytes of a line that are known only when its request is done.
const OUTCOME_BYTES: usize = 64;

/// The bytes of lines that are not charged. What a request is charged anyway covers them, about.
const UNCHARGED_BYTES: usize = 2 << 10;

/// The most statements of a request that are noted in case that it is refused, and for nothing
/// else.
const IN_CASE_MAX: u32 = 256;

/// The subject of a request: its notes for the audit log, and the kind by which it is counted.
pub(super) struct RequestAudit<'a> {
    /// `None` without a log.
    notes: Option<AuditNotes<'a>>,
    kind: CountedKind,
}

struct AuditNotes<'a> {
    log: &'a AuditLog,
    role: Option<LoggedInRole>,
    source: SocketAddr,
    is_preparation: bool,
    consistency: Option<Consistency>,
    /// The id of a batch, by the time of the request.
    batch: Option<Uuid>,
    events: Vec<StatementEvent>,
    /// The number of events that are not [`StatementEvent::is_chosen`].
    in_case: u32,
    /// The statements of which only the number is logged if the request is refused.
    unlogged: u32,
    /// The bytes of the texts and lines of chosen events.
    bytes: usize,
    charge: MemoryCharge,
}

/// A statement of the request.
struct StatementEvent {
    asked: RequestedStatement,
    /// Whether the operator has chosen to log such statements. Others are logged only if the
    /// request is refused for want of a right, which turns out later.
    is_chosen: bool,
    times: u32,
}

/// A statement as it came.
enum RequestedStatement {
    /// In the request. The text is as a line shows it.
    Text {
        subject: StatementSubject,
        text: String,
    },
    /// By its id.
    Prepared(Arc<ExecutableStatement>),
}

impl RequestedStatement {
    fn subject(&self) -> &StatementSubject {
        match self {
            RequestedStatement::Text { subject, .. } => subject,
            RequestedStatement::Prepared(prepared) => &prepared.subject,
        }
    }

    /// The text as a line shows it.
    fn text(&self) -> Cow<'_, str> {
        match self {
            RequestedStatement::Text { text, .. } => Cow::Borrowed(text),
            RequestedStatement::Prepared(prepared) => shown(
                Cow::Borrowed(&prepared.text),
                Some(&prepared.parsed.statement),
            ),
        }
    }
}

/// The beginning of a text without its secrets. Only that is copied, if anything is.
fn shown<'a>(text: Cow<'a, str>, statement: Option<&Statement>) -> Cow<'a, str> {
    let is_cut = text.len() > TEXT_BYTES_MAX;
    let changed = match redacted(&text, TEXT_BYTES_MAX, statement) {
        Cow::Owned(masked) => Some(masked),
        Cow::Borrowed(beginning) => is_cut.then(|| beginning.to_owned()),
    };
    match changed {
        Some(changed) if is_cut => Cow::Owned(changed + CUT),
        Some(changed) => Cow::Owned(changed),
        None => text,
    }
}

impl<'a> RequestAudit<'a> {
    /// No notes, as there is no log.
    pub fn nothing() -> RequestAudit<'a> {
        RequestAudit {
            notes: None,
            kind: CountedKind::Other,
        }
    }

    /// Begins the notes of a request. `batch` makes the id of a batch.
    pub fn begin(
        log: &'a AuditLog,
        (source, role): (SocketAddr, Option<LoggedInRole>),
        request: &Request,
        memory: &MemoryAccount,
        batch: impl FnOnce() -> Uuid,
    ) -> RequestAudit<'a> {
        let consistency = match request {
            Request::Query { parameters, .. } | Request::Execute { parameters, .. } => {
                Some(parameters.consistency)
            }
            Request::Batch(batch) => Some(batch.consistency),
            _ => None,
        };
        let notes = AuditNotes {
            log,
            role,
            source,
            is_preparation: matches!(request, Request::Prepare { .. }),
            consistency,
            batch: matches!(request, Request::Batch(_)).then(batch),
            events: Vec::new(),
            in_case: 0,
            unlogged: 0,
            bytes: 0,
            charge: memory.charge(),
        };
        RequestAudit {
            notes: Some(notes),
            kind: CountedKind::Other,
        }
    }

    /// The kind of the statement that was noted last.
    pub fn kind(&self) -> CountedKind {
        self.kind
    }

    /// Notes a statement before it is carried out, or a text that is none (`None`). `keyspace` is
    /// the one of names without any. A text that is given away is not copied.
    ///
    /// # Errors
    /// ServerError if it has to be logged and can't be, and Overloaded if there is no memory for
    /// its line.
    pub fn note(
        &mut self,
        text: Cow<'_, str>,
        statement: Option<&Statement>,
        keyspace: Option<&str>,
    ) -> Result<(), CqlError> {
        if let Some(statement) = statement {
            self.kind = CountedKind::of(statement);
        }
        match &mut self.notes {
            Some(notes) => notes.note_text(text, statement, keyspace),
            None => Ok(()),
        }
    }

    /// Notes that a prepared statement is executed, as [`RequestAudit::note`].
    ///
    /// # Errors
    /// As [`RequestAudit::note`].
    pub fn note_prepared(&mut self, prepared: &Arc<ExecutableStatement>) -> Result<(), CqlError> {
        self.kind = CountedKind::of(&prepared.parsed.statement);
        match &mut self.notes {
            Some(notes) => notes.note_prepared(prepared),
            None => Ok(()),
        }
    }

    /// Writes the lines of the request, which succeeded or failed with an error of this kind.
    ///
    /// # Errors
    /// ServerError if they can't be written now.
    pub async fn finish(self, error: Option<&ErrorKind>) -> Result<(), CqlError> {
        let Some(mut notes) = self.notes else {
            return Ok(());
        };
        let is_refused = error == Some(&ErrorKind::Unauthorized);
        let is_refused = is_refused && notes.log.filter().has(EventCategory::Auth);
        let mut lines = Vec::new();
        for event in std::mem::take(&mut notes.events) {
            // A batch may be long, so other tasks get their turn between its statements.
            tokio::task::consume_budget().await;
            if event.is_chosen {
                notes.put(&event, error, is_refused, &mut lines);
            } else if is_refused {
                notes.put_refusal(&event, error, &mut lines);
            }
        }
        if is_refused && notes.unlogged > 0 {
            notes.put_unlogged_count(error, &mut lines);
        }
        match lines.is_empty() {
            true => Ok(()),
            false => notes.log.write(lines, notes.charge).await,
        }
    }
}

impl AuditNotes<'_> {
    fn note_text(
        &mut self,
        text: Cow<'_, str>,
        statement: Option<&Statement>,
        keyspace: Option<&str>,
    ) -> Result<(), CqlError> {
        let category = match statement {
            Some(_) if self.is_preparation => EventCategory::Prepare,
            Some(statement) => category_of(statement),
            None => EventCategory::Error,
        };
        // It takes a while to tell all places of a long batch.
        if !self.may_log(category) {
            return Ok(());
        }
        let mut subject = match statement {
            Some(statement) => StatementSubject::of(statement, keyspace),
            None => StatementSubject::unreadable(),
        };
        if category == EventCategory::Prepare {
            (subject.category, subject.kind) = (category, "PREPARE_STATEMENT");
        }
        let is_chosen = self.chooses(&subject);
        let text = shown(text, statement).into_owned();
        self.add(RequestedStatement::Text { subject, text }, is_chosen)
    }

    fn note_prepared(&mut self, prepared: &Arc<ExecutableStatement>) -> Result<(), CqlError> {
        if let Some(last) = self.events.last_mut()
            && let RequestedStatement::Prepared(known) = &last.asked
            && Arc::ptr_eq(known, prepared)
        {
            last.times = last.times.saturating_add(1);
            return Ok(());
        }
        if !self.may_log(prepared.subject.category) {
            return Ok(());
        }
        let is_chosen = self.chooses(&prepared.subject);
        self.add(
            RequestedStatement::Prepared(Arc::clone(prepared)),
            is_chosen,
        )
    }

    fn add(&mut self, asked: RequestedStatement, is_chosen: bool) -> Result<(), CqlError> {
        let event = StatementEvent {
            asked,
            is_chosen,
            times: 1,
        };
        if is_chosen {
            self.log.check()?;
            self.charge_chosen(&event)?;
        } else if !self.logs_refusals() {
            return Ok(());
        } else if self.in_case == IN_CASE_MAX {
            self.unlogged += 1;
            return Ok(());
        } else {
            self.in_case += 1;
        }
        self.events.push(event);
        Ok(())
    }

    /// Charges the text and the lines of a chosen event before it is carried out.
    fn charge_chosen(&mut self, event: &StatementEvent) -> Result<(), CqlError> {
        let mut lines = Vec::new();
        // A refusal is logged for all places, and takes the most.
        self.put(event, None, self.logs_refusals(), &mut lines);
        let outcomes = event.asked.subject().places.len() * OUTCOME_BYTES;
        self.bytes += event.asked.text().len() + lines.len() + outcomes;
        if self.bytes > UNCHARGED_BYTES && self.charge.resize(self.bytes).is_err() {
            return Err(CqlError::new(
                ErrorKind::Overloaded,
                "Overloaded: there is no memory for the lines of this request in the audit log",
            ));
        }
        Ok(())
    }

    /// Whether a statement of a category may have to be logged, whatever keyspace it is about.
    fn may_log(&self, category: EventCategory) -> bool {
        let filter = self.log.filter();
        filter.keeps(category, self.role.as_deref(), None) || self.logs_refusals()
    }

    /// Whether the request is logged if it is refused for want of a right.
    fn logs_refusals(&self) -> bool {
        self.role.is_some() && self.log.filter().has(EventCategory::Auth)
    }

    fn chooses(&self, subject: &StatementSubject) -> bool {
        let mut places = subject.places.iter();
        places.any(|place| self.keeps(subject.category, place))
    }

    fn keeps(&self, category: EventCategory, place: &LoggedTarget) -> bool {
        let keyspace = place.keyspace.as_deref();
        let filter = self.log.filter();
        filter.keeps(category, self.role.as_deref(), keyspace)
    }

    /// Appends the lines of an event.
    fn put(
        &self,
        event: &StatementEvent,
        error: Option<&ErrorKind>,
        is_refused: bool,
        lines: &mut Vec<u8>,
    ) {
        let subject = event.asked.subject();
        let text = event.asked.text();
        for place in &subject.places {
            let of = match is_refused {
                true => (EventCategory::Auth, "UNAUTHORIZED_ATTEMPT"),
                false if self.keeps(subject.category, place) => (subject.category, subject.kind),
                false => continue,
            };
            let entry = LoggedEvent {
                keyspace: place.keyspace.as_deref(),
                table: place.table.as_deref(),
                terms: subject.terms.as_deref(),
                statement: Some(&text),
                times: (event.times > 1).then_some(event.times),
                ..LoggedEvent::new(of.0, of.1)
            };
            self.put_entry(entry, error, lines);
        }
    }

    /// Appends the lines of an event that was not chosen, now that its request is refused. Where
    /// there is no memory for them, it is counted.
    fn put_refusal(
        &mut self,
        event: &StatementEvent,
        error: Option<&ErrorKind>,
        lines: &mut Vec<u8>,
    ) {
        let before = lines.len();
        self.put(event, error, true, lines);
        self.bytes += lines.len() - before;
        if self.bytes > UNCHARGED_BYTES && self.charge.resize(self.bytes).is_err() {
            self.bytes -= lines.len() - before;
            lines.truncate(before);
            self.unlogged = self.unlogged.saturating_add(event.times);
        }
    }

    /// Appends a line for the statements of a refused request of which only the number is logged.
    fn put_unlogged_count(&self, error: Option<&ErrorKind>, lines: &mut Vec<u8>) {
        let entry = LoggedEvent {
            times: Some(self.unlogged),
            ..LoggedEvent::new(EventCategory::Auth, "UNAUTHORIZED_ATTEMPT")
        };
        self.put_entry(entry, error, lines);
    }

    /// Appends a line with what all of the request have.
    fn put_entry(&self, entry: LoggedEvent<'_>, error: Option<&ErrorKind>, lines: &mut Vec<u8>) {
        LoggedEvent {
            role: self.role.as_deref(),
            source: &self.source.to_string(),
            batch: self.batch.map(|id| id.to_string()).as_deref(),
            consistency: self.consistency.map(|level| level.to_string()).as_deref(),
            error: error.map(ErrorKind::name),
            ..entry
        }
        .put(lines);
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::*;
    use crate::security::audit::AuditOptions;

    /// A log of some categories, and its file.
    fn log(categories: &[EventCategory]) -> (AuditLog, PathBuf, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("audit.log");
        let options = AuditOptions {
            file: file.clone(),
            categories: categories.to_vec(),
            keyspaces: Vec::new(),
            roles_left_out: Vec::new(),
        };
        (AuditLog::open(options).unwrap(), file, directory)
    }

    /// The notes of a request of the role `app` with these statements.
    fn noted(log: &AuditLog, texts: impl IntoIterator<Item = String>) -> RequestAudit<'_> {
        let by = ("10.0.0.1:5".parse().unwrap(), Some("app".into()));
        let memory = MemoryAccount::default();
        let mut audited = RequestAudit::begin(log, by, &Request::Options, &memory, Uuid::nil);
        for text in texts {
            let parsed = cql::parser::parse_statement(&text).unwrap();
            let noted = audited.note(Cow::Owned(text), Some(&parsed.statement), None);
            assert_eq!(noted, Ok(()));
        }
        audited
    }

    fn lines(file: &Path) -> Vec<serde_json::Value> {
        let text = fs::read_to_string(file).unwrap();
        let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
        lines.collect()
    }

    #[tokio::test]
    async fn a_statement_that_is_not_chosen_is_told_only_when_it_is_refused() {
        let (log, file, _directory) = log(&[EventCategory::Auth]);
        let texts = |count: u32| {
            (0..count).map(|number| {
                let comment = "x".repeat(100);
                format!("/* {comment} */ SELECT * FROM shop.t{number}")
            })
        };
        let audited = noted(&log, texts(1_000));
        assert_eq!(audited.notes.as_ref().unwrap().charge.bytes(), 0);
        assert_eq!(audited.finish(None).await, Ok(()));
        let failed = noted(&log, texts(1)).finish(Some(&ErrorKind::Invalid));
        assert_eq!(failed.await, Ok(()));
        assert_eq!(fs::read_to_string(&file).unwrap(), "");
        let refused = noted(&log, texts(1_000)).finish(Some(&ErrorKind::Unauthorized));
        assert_eq!(refused.await, Ok(()));
        let lines = lines(&file);
        assert_eq!(lines.len(), IN_CASE_MAX as usize + 1);
        for line in &lines {
            assert_eq!(line["type"], "UNAUTHORIZED_ATTEMPT");
            assert_eq!(line["role"], "app");
        }
        assert_eq!(lines[7]["table"], "t7");
        let last = lines.last().unwrap();
        assert_eq!(last["times"], 1_000 - IN_CASE_MAX);
        assert_eq!(last.get("statement"), None);
    }

    #[tokio::test]
    async fn a_line_is_charged_as_it_is_written_and_has_a_bound() {
        let (log, file, _directory) = log(&[EventCategory::Auth, EventCategory::Ddl]);
        let text = format!("DROP TABLE \"{}\"", "\u{1}".repeat(1 << 20));
        let audited = noted(&log, [text]);
        let charged = audited.notes.as_ref().unwrap().charge.bytes();
        assert_eq!(audited.finish(Some(&ErrorKind::Unauthorized)).await, Ok(()));
        let written = fs::metadata(&file).unwrap().len();
        assert!(charged as u64 >= written, "{charged} {written}");
        assert!(written < 6 * (TEXT_BYTES_MAX as u64 + 4_096), "{written}");
        let lines = lines(&file);
        let shown = lines[0]["statement"].as_str().unwrap();
        assert!(shown.ends_with("\u{1}..."));
    }

    #[tokio::test]
    async fn a_long_comment_hides_no_grant() {
        let (log, file, _directory) = log(&[EventCategory::Dcl]);
        let comment = "password ".repeat(2_000);
        let text = format!("/* {comment} */ GRANT ALL ON ALL KEYSPACES TO mallory");
        assert_eq!(noted(&log, [text]).finish(None).await, Ok(()));
        let lines = lines(&file);
        assert_eq!(lines[0]["type"], "GRANT");
        assert_eq!(lines[0]["target"], "mallory");
        assert_eq!(lines[0]["permissions"], "ALL");
        assert_eq!(lines[0]["resource"], "ALL KEYSPACES");
    }
}
