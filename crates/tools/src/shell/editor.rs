//! The prompt: a line editor with history, completion and colours, on a thread of its own.
//!
//! The editor blocks, and the driver's tasks must go on meanwhile: they answer the server's events,
//! and notice a connection that is lost.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::{CmdKind, Highlighter};
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::{ValidationContext, ValidationResult, Validator};
use rustyline::{ColorMode, CompletionType, Config, Context, Editor, Helper};
use scylla::client::session::Session;
use tokio::sync::mpsc;

use super::completion::{SchemaNames, completions};
use super::highlight::coloured;
use super::splitter::is_complete;

/// The most statements in the history.
const HISTORY_MAX: usize = 10_000;

/// A line that the user is to type.
struct LineRequest {
    prompt: String,
    /// Whether it is statements, which may have several lines, and not an answer to a question.
    is_statement: bool,
}

/// The end of a line that the user typed.
#[derive(Debug)]
pub(super) enum TypedLine {
    /// The line, or several.
    Text(String),
    /// Ctrl-C.
    Interrupted,
    /// Ctrl-D, or the terminal is closed.
    End,
    /// The terminal can't be used.
    Failed(String),
}

/// A prompt at the terminal.
pub(super) struct LinePrompt {
    requests: SyncSender<LineRequest>,
    lines: mpsc::Receiver<TypedLine>,
}

impl LinePrompt {
    /// Starts the editor.
    ///
    /// # Errors
    /// If the system has no thread for it.
    pub(super) fn start(session: Arc<Session>, has_colours: bool) -> std::io::Result<LinePrompt> {
        let (requests, to_do) = sync_channel(1);
        let (typed, lines) = mpsc::channel(1);
        let helper = StatementHelper {
            session,
            is_statement: true,
            has_colours,
        };
        let thread = std::thread::Builder::new().name("prompt".to_owned());
        thread.spawn(move || edit(helper, &to_do, &typed))?;
        Ok(LinePrompt { requests, lines })
    }

    /// Reads statements, or one command.
    pub(super) async fn statement(&mut self, prompt: &str) -> TypedLine {
        self.line(prompt, true).await
    }

    /// Reads the answer to a question.
    pub(super) async fn answer(&mut self, question: &str) -> TypedLine {
        self.line(question, false).await
    }

    async fn line(&mut self, prompt: &str, is_statement: bool) -> TypedLine {
        let prompt = prompt.to_owned();
        let request = LineRequest {
            prompt,
            is_statement,
        };
        // The editor waits for requests, so there is room.
        if self.requests.send(request).is_err() {
            return TypedLine::End;
        }
        self.lines.recv().await.unwrap_or(TypedLine::End)
    }
}

/// The editor's thread: reads a line for each request.
fn edit(
    helper: StatementHelper,
    requests: &Receiver<LineRequest>,
    typed: &mpsc::Sender<TypedLine>,
) {
    let mut editor = match new_editor(helper) {
        Ok(editor) => editor,
        Err(error) => {
            // The prompt that is dropped meanwhile needs no answer, here and below.
            let _ = typed.blocking_send(TypedLine::Failed(error.to_string()));
            return;
        }
    };
    let history = history_path();
    if let Some(path) = &history {
        // There is none at first.
        let _ = editor.load_history(path);
    }
    while let Ok(request) = requests.recv() {
        if let Some(helper) = editor.helper_mut() {
            helper.is_statement = request.is_statement;
        }
        let line = match editor.readline(request.prompt.as_str()) {
            Ok(line) => {
                if request.is_statement && is_for_history(&line) {
                    remember(&mut editor, &line, history.as_ref());
                }
                TypedLine::Text(line)
            }
            Err(ReadlineError::Interrupted) => TypedLine::Interrupted,
            Err(ReadlineError::Eof) => TypedLine::End,
            Err(error) => TypedLine::Failed(error.to_string()),
        };
        if typed.blocking_send(line).is_err() {
            return;
        }
    }
}

fn new_editor(
    helper: StatementHelper,
) -> rustyline::Result<Editor<StatementHelper, DefaultHistory>> {
    let colours = match helper.has_colours {
        true => ColorMode::Enabled,
        false => ColorMode::Disabled,
    };
    let config = Config::builder()
        .max_history_size(HISTORY_MAX)?
        .history_ignore_dups(true)?
        .completion_type(CompletionType::List)
        .color_mode(colours)
        .build();
    let mut editor = Editor::with_config(config)?;
    editor.set_helper(Some(helper));
    Ok(editor)
}

/// Adds a statement to the history, and to its file at once, as another shell may run.
fn remember(
    editor: &mut Editor<StatementHelper, DefaultHistory>,
    line: &str,
    path: Option<&PathBuf>,
) {
    // A history that can't be written is no reason to stop.
    let _ = editor.add_history_entry(line);
    if let Some(path) = path {
        let _ = path.parent().map(std::fs::create_dir_all);
        let _ = editor.append_history(path);
    }
}

/// Whether a statement may be on the disk: not with a password in it.
fn is_for_history(line: &str) -> bool {
    !line.trim().is_empty() && !line.to_ascii_lowercase().contains("password")
}

/// The file of the history, in the user's state directory (XDG).
fn history_path() -> Option<PathBuf> {
    let directory = |name| {
        let set = std::env::var_os(name).filter(|value| !value.is_empty());
        set.map(PathBuf::from)
    };
    let state = directory("XDG_STATE_HOME")
        .or_else(|| Some(directory("HOME")?.join(".local").join("state")))?;
    Some(state.join("annulus").join("shell_history"))
}

/// Completes and colours what is typed, and sees where a statement ends.
struct StatementHelper {
    session: Arc<Session>,
    is_statement: bool,
    has_colours: bool,
}

impl StatementHelper {
    fn names(&self) -> SchemaNames {
        let state = self.session.get_cluster_state();
        let keyspaces = state.keyspaces_iter().map(|(name, keyspace)| {
            let tables = keyspace.tables.iter().map(|(name, table)| {
                let columns = table.columns.keys().cloned().collect::<Vec<_>>();
                (name.clone(), columns)
            });
            (name.to_owned(), tables.collect())
        });
        SchemaNames {
            used: self.session.get_keyspace().map(|name| name.to_string()),
            keyspaces: keyspaces.collect(),
        }
    }
}

impl Completer for StatementHelper {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        pos: usize,
        _: &Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        match self.is_statement {
            true => Ok(completions(&line[..pos], &self.names())),
            false => Ok((pos, Vec::new())),
        }
    }
}

impl Hinter for StatementHelper {
    type Hint = String;
}

impl Highlighter for StatementHelper {
    fn highlight<'l>(&self, line: &'l str, _: usize) -> Cow<'l, str> {
        match self.has_colours && self.is_statement {
            true => Cow::Owned(coloured(line)),
            false => Cow::Borrowed(line),
        }
    }

    fn highlight_char(&self, _: &str, _: usize, kind: CmdKind) -> bool {
        self.has_colours && kind != CmdKind::MoveCursor
    }
}

impl Validator for StatementHelper {
    fn validate(&self, context: &mut ValidationContext<'_>) -> rustyline::Result<ValidationResult> {
        match self.is_statement && !is_complete(context.input()) {
            true => Ok(ValidationResult::Incomplete),
            false => Ok(ValidationResult::Valid(None)),
        }
    }
}

impl Helper for StatementHelper {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passwords_are_not_remembered() {
        assert!(is_for_history("SELECT 1;"));
        assert!(!is_for_history("CREATE ROLE ada WITH Password = 'x';"));
        assert!(!is_for_history("  "));
    }
}
