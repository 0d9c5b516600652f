//! The files that settings name.

use std::path::Path;

use store::Pem;

use crate::exit::Failure;

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::Configuration(format!("{}: {error}", path.display())))
}

/// Certificates or a key.
pub fn pem(path: &Path) -> Result<Pem, Failure> {
    Ok(Pem {
        bytes: read(path)?.into(),
        origin: path.display().to_string(),
    })
}

/// What stands in the file, without the line break at its end.
pub fn password(path: &Path) -> Result<String, Failure> {
    let text = String::from_utf8(read(path)?).map_err(|_| {
        Failure::Configuration(format!("{}: the password is not UTF-8", path.display()))
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}
