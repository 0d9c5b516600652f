//! The output of commands on stdout and stderr.
//!
//! A reader that has seen enough, such as `head`, is no failure: what follows is left out, and the
//! command ends as it would have.

use std::fmt::Display;
use std::io::{ErrorKind, Write};

/// Writes a text to stdout.
///
/// # Errors
/// If stdout can't be written, as on a full disk.
pub fn print(text: impl Display) -> anyhow::Result<()> {
    write_to(&mut std::io::stdout().lock(), text)
}

/// Writes a line to stderr, if that is open still.
pub fn complain(text: impl Display) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

fn write_to(out: &mut impl Write, text: impl Display) -> anyhow::Result<()> {
    match write!(out, "{text}").and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An output that fails.
    struct Failing(ErrorKind);

    impl Write for Failing {
        fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_reader_that_has_gone_is_no_failure_and_a_full_disk_is() {
        assert!(write_to(&mut Failing(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(write_to(&mut Failing(ErrorKind::StorageFull), "x").is_err());
        let mut written = Vec::new();
        write_to(&mut written, "x\n").unwrap();
        assert_eq!(written, b"x\n");
    }
}
