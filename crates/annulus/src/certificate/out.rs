//! Writing keys and certificates, so that no file is lost and no key is readable for others.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use anyhow::Context;

/// The mode of a key: readable only for its owner.
const KEY_MODE: u32 = 0o600;
/// The mode of a certificate.
const CERTIFICATE_MODE: u32 = 0o644;

/// Writes a file that must not be there yet.
pub fn write_new(path: &Path, text: &str, is_key: bool) -> anyhow::Result<()> {
    let mode = match is_key {
        true => KEY_MODE,
        false => CERTIFICATE_MODE,
    };
    let writing = || {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(mode)
            .open(path)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    };
    writing().with_context(|| format!("writing {}", path.display()))
}

/// Writes files by their names, keys as such. Files that are there are replaced, each at one
/// moment, so that a server that reads them never finds half a file.
pub fn write_all(directory: &Path, files: &[(String, &str)]) -> anyhow::Result<()> {
    let new = |name: &str| directory.join(format!(".{name}.new"));
    for (name, text) in files {
        // One may be left of a run that was killed.
        let _ = fs::remove_file(new(name));
        write_new(&new(name), text, name.ends_with(".key"))?;
    }
    for (name, _) in files {
        let path = directory.join(name);
        fs::rename(new(name), &path).with_context(|| format!("writing {}", path.display()))?;
    }
    Ok(())
}
