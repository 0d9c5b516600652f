//! `annulus licences`: prints the licences of what the program contains.

use std::io::{ErrorKind, Write};

const TEXT: &str = include_str!("../../../LICENSES-THIRD-PARTY.txt");

/// Prints the list of crates and the texts of their licences.
pub fn run() -> anyhow::Result<()> {
    // A reader that has seen enough, such as `head`, causes no failure.
    match std::io::stdout().write_all(TEXT.as_bytes()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => Err(error.into()),
        _ => Ok(()),
    }
}
