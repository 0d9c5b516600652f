//! The output of the shell, and the screen that it goes to.

use std::io::{ErrorKind, IsTerminal as _, Write as _};

use super::table::ScreenForm;
use crate::ToolError;

/// The width of a terminal that doesn't say its own.
const USUAL_WIDTH: usize = 80;

/// Stdout. A reader that has seen enough, such as `head`, is no failure: what follows is left out.
#[derive(Debug, Default)]
pub(super) struct ShellOutput {
    is_closed: bool,
}

impl ShellOutput {
    /// Writes a text.
    ///
    /// # Errors
    /// If stdout can't be written, as on a full disk.
    pub(super) fn put(&mut self, text: &str) -> Result<(), ToolError> {
        if self.is_closed {
            return Ok(());
        }
        let mut stdout = std::io::stdout().lock();
        match stdout
            .write_all(text.as_bytes())
            .and_then(|()| stdout.flush())
        {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => self.is_closed = true,
            Err(error) => return Err(ToolError::File(format!("writing the output: {error}"))),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Whether the reader has seen enough.
    pub(super) fn is_closed(&self) -> bool {
        self.is_closed
    }
}

/// Writes a line to stderr, if that is open still.
pub(super) fn complain(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// Whether colours may be used: on a terminal, unless the user has set NO_COLOR (no-color.org).
pub(super) fn has_colours() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|terminal| terminal == "dumb");
    std::io::stdout().is_terminal() && !refused && !dumb
}

/// The screen at this moment, as a window may change its size.
pub(super) fn screen(has_colours: bool) -> ScreenForm {
    let stdout = std::io::stdout();
    let width = stdout.is_terminal().then(|| {
        let size = rustix::termios::tcgetwinsize(&stdout);
        let width = size.map_or(0, |size| usize::from(size.ws_col));
        match width {
            0 => USUAL_WIDTH,
            width => width,
        }
    });
    ScreenForm { width, has_colours }
}
