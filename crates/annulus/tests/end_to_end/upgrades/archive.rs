//! A directory as one compressed file, made by the system's `tar`. Holes in files stay holes.

use std::path::Path;
use std::process::Command;

/// Packs `directory/name`.
pub fn pack(directory: &Path, name: &str, file: &Path) {
    // The entries are sorted and have no owners, so that the committed file depends on the contents
    // alone.
    run(Command::new("tar")
        .env("GZIP", "-9")
        .args([
            "--sparse",
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
        ])
        .arg("-czf")
        .arg(file)
        .arg("-C")
        .arg(directory)
        .arg(name));
}

/// Unpacks a file of [`pack`] into a directory.
pub fn unpack(file: &Path, directory: &Path) {
    run(Command::new("tar")
        .arg("-xzf")
        .arg(file)
        .arg("-C")
        .arg(directory));
}

fn run(command: &mut Command) {
    let status = command.status().expect("tar is installed");
    assert!(status.success(), "{command:?}: {status}");
}
