//! Carries out statements and commands, and writes their answers.

use std::fs::File;
use std::sync::Arc;
use std::time::{Duration, Instant};

use scylla::client::session::Session;
use scylla::errors::{ExecutionError, RequestAttemptError};
use scylla::observability::tracing::TracingInfo;
use scylla::response::query_result::QueryResult;
use scylla::response::{PagingState, PagingStateResponse};
use scylla::statement::{Consistency, SerialConsistency, Statement};
use tokio::signal::unix::{SignalKind, signal};
use uuid::Uuid;

use super::answer::ShownAnswer;
use super::building::answered_when_built;
use super::commands::{self, LEVELS, PageRows, ShellCommand};
use super::editor::{LinePrompt, TypedLine};
use super::format::AnswerFormat;
use super::help;
use super::input::{self, InputPieces};
use super::output::{self, ShellOutput};
use super::rows::AnswerPage;
use super::splitter::{StatementPiece, StatementSplitter};
use crate::{CqlFlags, ToolError};

/// The rows of a page at a prompt, as in cqlsh.
const PAGE_AT_PROMPT: i32 = 100;

/// The rows of a page in a script.
const PAGE_IN_SCRIPT: i32 = 1_000;

/// Files that may name each other by SOURCE.
const NESTED_MAX: usize = 16;

/// Whether the shell goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShellFlow {
    /// With the next statement.
    Continue,
    /// No: the user leaves.
    Quit,
}

/// The shell: a session, and all that its commands set.
pub(super) struct ShellRunner {
    session: Arc<Session>,
    flags: CqlFlags,
    format: AnswerFormat,
    page_rows: PageRows,
    consistency: Consistency,
    serial: Option<SerialConsistency>,
    is_traced: bool,
    is_timed: bool,
    has_colours: bool,
    output: ShellOutput,
    /// The prompt, where the user sits before a terminal.
    prompt: Option<LinePrompt>,
    /// Files that are read by SOURCE now, each by the one before.
    nested: usize,
}

impl ShellRunner {
    /// A shell with nothing set.
    pub(super) fn new(
        session: Arc<Session>,
        flags: CqlFlags,
        format: AnswerFormat,
        has_colours: bool,
    ) -> ShellRunner {
        ShellRunner {
            session,
            flags,
            format,
            page_rows: PageRows::Default,
            consistency: Consistency::LocalQuorum,
            serial: None,
            is_traced: false,
            is_timed: false,
            has_colours,
            output: ShellOutput::default(),
            prompt: None,
            nested: 0,
        }
    }

    /// Reads and carries out statements at a prompt until the user leaves.
    ///
    /// # Errors
    /// If the terminal can't be used. A statement that fails is complained about.
    pub(super) async fn run_prompt(&mut self) -> Result<(), ToolError> {
        let prompt = LinePrompt::start(self.session.clone(), self.has_colours);
        let prompt = prompt.map_err(|error| ToolError::File(format!("the prompt: {error}")))?;
        self.prompt = Some(prompt);
        // From here on Ctrl-C ends a statement, or the program that a command runs, and not the
        // shell. Code that waits for something listens for it.
        let interrupts = signal(SignalKind::interrupt());
        let _interrupts =
            interrupts.map_err(|error| ToolError::File(format!("Ctrl-C: {error}")))?;
        let name = self.session.get_cluster_state().cluster_name().to_owned();
        let addresses = self.flags.addresses();
        self.output.put(&format!(
            "{name} at {addresses}. Statements end with ; and \\? lists commands, \\q leaves.\n"
        ))?;
        loop {
            let used = self.session.get_keyspace();
            let text = match used {
                Some(name) => format!("annulus:{name}> "),
                None => "annulus> ".to_owned(),
            };
            let Some(prompt) = &mut self.prompt else {
                return Ok(());
            };
            match prompt.statement(&text).await {
                TypedLine::Text(line) => {
                    if self.run_typed(&line).await == ShellFlow::Quit {
                        return Ok(());
                    }
                }
                TypedLine::Interrupted => {}
                TypedLine::End => return Ok(()),
                TypedLine::Failed(why) => {
                    return Err(ToolError::File(format!("the terminal: {why}")));
                }
            }
        }
    }

    /// Carries out the statements of what was typed. The first that fails ends them.
    async fn run_typed(&mut self, line: &str) -> ShellFlow {
        let mut splitter = StatementSplitter::default();
        splitter.push(line);
        while let Some(piece) = splitter.take_last() {
            match self.run_piece(&piece).await {
                Ok(ShellFlow::Quit) => return ShellFlow::Quit,
                Ok(ShellFlow::Continue) => {}
                Err(error) => {
                    self.complain(&error.to_string());
                    break;
                }
            }
        }
        ShellFlow::Continue
    }

    fn complain(&self, text: &str) {
        match self.has_colours {
            true => output::complain(&format!("\u{1b}[31m{text}\u{1b}[0m")),
            false => output::complain(text),
        }
    }

    /// Carries out the statements of an input. `origin` is its name, for errors.
    ///
    /// # Errors
    /// If a statement fails, with its place; or if the input can't be read.
    pub(super) async fn run_input(
        &mut self,
        origin: &str,
        mut pieces: InputPieces,
    ) -> Result<ShellFlow, ToolError> {
        let mut splitter = StatementSplitter::default();
        let mut is_last = false;
        while !is_last {
            match or_interrupted(self.prompt.is_some(), pieces.recv()).await? {
                Some(Ok(text)) => splitter.push(&text),
                Some(Err(why)) => return Err(ToolError::File(format!("{origin}: {why}"))),
                None => is_last = true,
            }
            loop {
                let piece = match is_last {
                    true => splitter.take_last(),
                    false => splitter.take(),
                };
                let Some(piece) = piece else { break };
                match self.run_piece(&piece).await {
                    Ok(ShellFlow::Continue) => {}
                    Ok(ShellFlow::Quit) => return Ok(ShellFlow::Quit),
                    Err(ToolError::Statement(why)) => {
                        let place = format!("{origin}:{}: {why}", piece.line);
                        return Err(ToolError::Statement(place));
                    }
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(ShellFlow::Continue)
    }

    /// Carries out the statements of a file.
    ///
    /// # Errors
    /// If the file can't be read, or as [`ShellRunner::run_input`].
    pub(super) async fn run_file(&mut self, path: &str) -> Result<ShellFlow, ToolError> {
        let wrong = |error: std::io::Error| ToolError::File(format!("{path}: {error}"));
        let file = File::open(path).map_err(wrong)?;
        let pieces = input::pieces(file).map_err(wrong)?;
        self.run_input(path, pieces).await
    }

    async fn run_piece(&mut self, piece: &StatementPiece) -> Result<ShellFlow, ToolError> {
        match commands::parse(&piece.text) {
            None => self.run_statement(&piece.text).await?,
            Some(Err(why)) => return Err(ToolError::Statement(why)),
            Some(Ok(command)) => return self.run_command(command).await,
        }
        Ok(ShellFlow::Continue)
    }

    async fn run_command(&mut self, command: ShellCommand) -> Result<ShellFlow, ToolError> {
        match command {
            ShellCommand::Quit => return Ok(ShellFlow::Quit),
            ShellCommand::Help => self.output.put(help::COMMANDS)?,
            ShellCommand::Clear => self.output.put("\u{1b}[2J\u{1b}[H")?,
            ShellCommand::Describe(None) => self.run_statement("DESCRIBE TABLES").await?,
            ShellCommand::Describe(Some(name)) => {
                self.run_statement(&format!("DESCRIBE {name}")).await?;
            }
            ShellCommand::Timing(set) => {
                self.is_timed = set.unwrap_or(!self.is_timed);
                self.say("Timing", on_off(self.is_timed))?;
            }
            ShellCommand::Expand(set) => self.expand(set.unwrap_or(self.is_expanded()))?,
            ShellCommand::ChangeExpand => self.expand(!self.is_expanded())?,
            ShellCommand::Tracing(set) => {
                self.is_traced = set.unwrap_or(self.is_traced);
                self.say("Tracing", on_off(self.is_traced))?;
            }
            ShellCommand::Paging(set) => {
                self.page_rows = set.unwrap_or(self.page_rows);
                let text = match self.rows_of_page() {
                    Some(rows) => format!("{rows} rows a page"),
                    None => "off".to_owned(),
                };
                self.say("Paging", &text)?;
            }
            ShellCommand::Consistency(set) => {
                self.consistency = set.unwrap_or(self.consistency);
                let level = LEVELS.iter().find(|(_, level)| *level == self.consistency);
                self.say("Consistency", level.map_or("", |(name, _)| *name))?;
            }
            ShellCommand::SerialConsistency(set) => {
                self.serial = set.or(self.serial);
                let text = match self.serial {
                    Some(SerialConsistency::LocalSerial) => "LOCAL_SERIAL",
                    Some(SerialConsistency::Serial) => "SERIAL",
                    None => "the server's",
                };
                self.say("Serial consistency", text)?;
            }
            ShellCommand::Source(path) => return self.source(&path).await,
            ShellCommand::Program { name, arguments } => self.program(name, arguments).await?,
        }
        Ok(ShellFlow::Continue)
    }

    async fn source(&mut self, path: &str) -> Result<ShellFlow, ToolError> {
        if self.nested == NESTED_MAX {
            let why =
                format!("{path}: {NESTED_MAX} files name each other by SOURCE, is it a circle?");
            return Err(ToolError::Statement(why));
        }
        self.nested += 1;
        let flow = Box::pin(self.run_file(path)).await;
        self.nested -= 1;
        match flow {
            Err(ToolError::File(why)) => Err(ToolError::Statement(why)),
            flow => flow,
        }
    }

    /// Runs another command of this program, on the same server.
    async fn program(&mut self, name: &'static str, rest: Vec<String>) -> Result<(), ToolError> {
        let failed =
            |error: &dyn std::fmt::Display| ToolError::Statement(format!(".{name}: {error}"));
        let this = std::env::current_exe().map_err(|error| failed(&error))?;
        let mut command = std::process::Command::new(this);
        command.arg(name).args(self.flags.arguments()).args(rest);
        let ended = tokio::task::spawn_blocking(move || command.status()).await;
        let status = ended.map_err(|error| failed(&error))?;
        let status = status.map_err(|error| failed(&error))?;
        match status.success() {
            true => Ok(()),
            false => Err(failed(&status)),
        }
    }

    fn is_expanded(&self) -> bool {
        matches!(self.format, AnswerFormat::Table { is_expanded: true })
    }

    fn expand(&mut self, is_expanded: bool) -> Result<(), ToolError> {
        if matches!(self.format, AnswerFormat::Table { .. }) {
            self.format = AnswerFormat::Table { is_expanded };
        }
        self.say("A line for each cell", on_off(is_expanded))
    }

    /// Says what a command has set, to people: scripts read answers.
    fn say(&mut self, what: &str, set: &str) -> Result<(), ToolError> {
        match self.prompt {
            Some(_) => self.output.put(&format!("{what}: {set}.\n")),
            None => Ok(()),
        }
    }

    fn rows_of_page(&self) -> Option<i32> {
        match self.page_rows {
            PageRows::All => None,
            PageRows::Of(rows) => Some(rows),
            PageRows::Default if self.prompt.is_some() => Some(PAGE_AT_PROMPT),
            PageRows::Default => Some(PAGE_IN_SCRIPT),
        }
    }

    /// Executes a statement, and writes its answer page by page.
    async fn run_statement(&mut self, text: &str) -> Result<(), ToolError> {
        let statement = self.statement(text);
        let mut writer = ShownAnswer::new(self.format, commands::is_describe(text));
        let mut state = PagingState::start();
        let mut time = Duration::ZERO;
        loop {
            let begun = Instant::now();
            let request = answered_when_built(
                async || self.request(statement.clone(), state.clone()).await,
                output::complain,
            );
            let (answer, next) = or_interrupted(self.prompt.is_some(), request).await??;
            time += begun.elapsed();
            for warning in answer.warnings() {
                output::complain(&format!("warning: {warning}"));
            }
            let trace = answer.tracing_id();
            self.write_page(&mut writer, answer)?;
            if let Some(id) = trace {
                self.show_trace(&id).await?;
            }
            let std::ops::ControlFlow::Continue(next) = next.into_paging_control_flow() else {
                break;
            };
            if self.output.is_closed() || !self.wants_more().await {
                break;
            }
            state = next;
        }
        self.output.put(&writer.end())?;
        if self.is_timed {
            let milliseconds = time.as_secs_f64() * 1000.0;
            self.output.put(&format!("Time: {milliseconds:.3} ms\n"))?;
        }
        Ok(())
    }

    fn statement(&self, text: &str) -> Statement {
        let mut statement = Statement::new(text);
        if let Some(rows) = self.rows_of_page() {
            statement.set_page_size(rows);
        }
        statement.set_consistency(self.consistency);
        if self.serial.is_some() {
            statement.set_serial_consistency(self.serial);
        }
        statement.set_tracing(self.is_traced);
        statement
    }

    async fn request(
        &self,
        statement: Statement,
        state: PagingState,
    ) -> Result<(QueryResult, PagingStateResponse), ToolError> {
        let answer = match self.rows_of_page() {
            Some(_) => self.session.query_single_page(statement, (), state).await,
            None => {
                let answer = self.session.query_unpaged(statement, ()).await;
                answer.map(|answer| (answer, PagingStateResponse::NoMorePages))
            }
        };
        answer.map_err(|error| ToolError::Statement(explain(&error)))
    }

    fn write_page(
        &mut self,
        writer: &mut ShownAnswer,
        answer: QueryResult,
    ) -> Result<(), ToolError> {
        if !answer.is_rows() {
            return Ok(());
        }
        let rows = answer.into_rows_result();
        let rows = rows.map_err(|error| ToolError::Statement(error.to_string()))?;
        let page = AnswerPage::read(&rows).map_err(ToolError::Statement)?;
        let screen = output::screen(self.has_colours);
        self.output.put(&writer.page(&page, screen))
    }

    /// Whether the user wants the next page. A script wants all.
    async fn wants_more(&mut self) -> bool {
        let is_seen = output::screen(false).width.is_some();
        let Some(prompt) = self.prompt.as_mut().filter(|_| is_seen) else {
            return true;
        };
        match prompt.answer("-- more: Enter, or q to end --").await {
            TypedLine::Text(line) => !line.trim().eq_ignore_ascii_case("q"),
            TypedLine::Interrupted | TypedLine::End | TypedLine::Failed(_) => false,
        }
    }

    async fn show_trace(&mut self, id: &Uuid) -> Result<(), ToolError> {
        let trace = self.session.get_tracing_info(id);
        let trace = or_interrupted(self.prompt.is_some(), trace).await?;
        match trace {
            Ok(trace) => {
                let text = trace_text(id, &trace);
                match self.format {
                    AnswerFormat::Table { .. } => self.output.put(&text)?,
                    // Rows for a program have nothing else between them.
                    AnswerFormat::Json | AnswerFormat::Csv => output::complain(&text),
                }
            }
            Err(error) => output::complain(&format!("no trace {id}: {error}")),
        }
        Ok(())
    }
}

/// The steps of a traced statement with their times.
fn trace_text(id: &Uuid, trace: &TracingInfo) -> String {
    let mut text = format!("\nTrace {id}");
    if let Some(duration) = trace.duration {
        text.push_str(&format!(", {duration} \u{b5}s"));
    }
    text.push('\n');
    for event in &trace.events {
        let elapsed = event.source_elapsed.unwrap_or(0);
        let activity = event.activity.as_deref().unwrap_or("");
        let source = event.source.map(|source| source.to_string());
        let source = source.unwrap_or_default();
        let activity = super::format::visible(activity);
        text.push_str(&format!(
            "{elapsed:>10} \u{b5}s  {source:<15}  {activity}\n"
        ));
    }
    text
}

fn on_off(is_on: bool) -> &'static str {
    match is_on {
        true => "on",
        false => "off",
    }
}

/// The outcome of some work, unless the user presses Ctrl-C at the prompt before its end. A script
/// ends by that signal.
async fn or_interrupted<T>(
    is_at_prompt: bool,
    work: impl Future<Output = T>,
) -> Result<T, ToolError> {
    if !is_at_prompt {
        return Ok(work.await);
    }
    tokio::select! {
        outcome = work => Ok(outcome),
        _ = tokio::signal::ctrl_c() => Err(ToolError::Interrupted),
    }
}

/// The server's own words where it has refused a statement, else the driver's.
fn explain(error: &ExecutionError) -> String {
    match error {
        ExecutionError::LastAttemptError(RequestAttemptError::DbError(kind, message)) => {
            let name = format!("{kind:?}");
            let end = name.find(|c: char| !c.is_alphanumeric());
            let name = &name[..end.unwrap_or(name.len())];
            match message.as_str() {
                "" => format!("{name}: {kind}"),
                message => format!("{name}: {message}"),
            }
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use scylla::errors::DbError;

    use super::*;

    #[test]
    fn the_servers_words_are_passed_on() {
        let of = |kind, message: &str| {
            let error = RequestAttemptError::DbError(kind, message.to_owned());
            explain(&ExecutionError::LastAttemptError(error))
        };
        let text = of(DbError::SyntaxError, "line 1:10 expected FROM");
        assert_eq!(text, "SyntaxError: line 1:10 expected FROM");
        let exists = DbError::AlreadyExists {
            keyspace: "k".to_owned(),
            table: "t".to_owned(),
        };
        assert_eq!(of(exists, "t exists"), "AlreadyExists: t exists");
        assert!(of(DbError::Overloaded, "").starts_with("Overloaded: "));
    }
}
