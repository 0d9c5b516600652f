//! `annulus licences`: prints the licences of what the program contains.

use crate::output;

const TEXT: &str = include_str!("../../../LICENSES-THIRD-PARTY.txt");

/// Prints the list of crates and the texts of their licences.
pub fn run() -> anyhow::Result<()> {
    output::print(TEXT)
}
