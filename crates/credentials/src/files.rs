//! Reading the files that options and settings name.

use std::fs::{File, Permissions};
use std::io::{self, Read as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use cql::secret::Secret;
use http_server::TokenSet;
use net::tls::Pem;

use crate::FileError;

fn read(path: &Path) -> Result<Vec<u8>, FileError> {
    std::fs::read(path).map_err(|error| FileError::new(path, error))
}

/// Reads certificates or a key.
///
/// # Errors
/// If the file can't be read.
pub fn pem(path: &Path) -> Result<Pem, FileError> {
    Ok(Pem {
        bytes: read(path)?.into(),
        origin: path.display().to_string(),
    })
}

/// Reads a password, without the line break at its end.
///
/// # Errors
/// If the file can't be read or is not UTF-8.
pub fn password(path: &Path) -> Result<Secret<String>, FileError> {
    let text = String::from_utf8(read(path)?)
        .map_err(|_| FileError::new(path, "the password is not UTF-8"))?;
    let text = Secret::new(text);
    let line = text.expose().trim_end_matches(['\r', '\n']);
    Ok(line.to_owned().into())
}

/// Takes the rights of other users of the machine from a file with a secret. Returns whether they
/// had any.
///
/// # Errors
/// If the file can't be looked at, or others have rights that can't be taken.
pub fn take_from_others(path: &Path) -> Result<bool, FileError> {
    let wrong = |why: &dyn ToString| FileError::new(path, why.to_string());
    let metadata = std::fs::metadata(path).map_err(|error| wrong(&error))?;
    let mode = metadata.permissions().mode();
    // A pipe or a terminal is none of them.
    if !metadata.is_file() || mode & OF_OTHERS == 0 {
        return Ok(false);
    }
    let private = Permissions::from_mode(mode & 0o7777 & !OF_OTHERS);
    let changed = std::fs::set_permissions(path, private);
    changed.map_err(|error| {
        wrong(&format!(
            "every user of this machine may read or write the file, and its mode can't be changed ({error}): \
             chmod 600 (or 640 for a group), or mount it so"
        ))
    })?;
    Ok(true)
}

/// The bits of a mode that are the rights of users other than the owner and the group.
const OF_OTHERS: u32 = 0o007;

/// Reads the tokens of a file (`token-file`), which users of the machine must not be able to read.
///
/// # Errors
/// If others can read or write the file, or it has no tokens.
pub fn tokens(path: &Path) -> Result<TokenSet, FileError> {
    let text = private_text(path)?;
    TokenSet::parse(text.expose()).map_err(|why| FileError::new(path, why))
}

/// Reads the first token of such a file, for a client.
///
/// # Errors
/// As [`tokens`].
pub fn first_token(path: &Path) -> Result<Secret<String>, FileError> {
    let text = private_text(path)?;
    match http_server::first_token(text.expose()) {
        Ok(token) => Ok(token.to_owned().into()),
        Err(why) => Err(FileError::new(path, why)),
    }
}

/// The largest file of tokens.
const TOKENS_BYTES_MAX: u64 = 1 << 20;

fn private_text(path: &Path) -> Result<Secret<String>, FileError> {
    let wrong = |why: &dyn ToString| FileError::new(path, why.to_string());
    let file = File::open(path).map_err(|error| wrong(&error))?;
    let metadata = file.metadata().map_err(|error| wrong(&error))?;
    if metadata.permissions().mode() & OF_OTHERS != 0 {
        return Err(wrong(
            &"every user of this machine may read or write the file: chmod 600 (or 640 for a group)",
        ));
    }
    // A text that grows while it is read leaves copies in memory.
    let room = metadata.len().min(TOKENS_BYTES_MAX) as usize + 1;
    let mut bytes = Vec::with_capacity(room);
    let read = file.take(TOKENS_BYTES_MAX + 1).read_to_end(&mut bytes);
    let text = read.and_then(|_| String::from_utf8(bytes).map_err(io::Error::other));
    let text = Secret::new(text.map_err(|error| wrong(&error))?);
    match text.expose().len() as u64 > TOKENS_BYTES_MAX {
        true => Err(wrong(&"the file is longer than 1 MiB")),
        false => Ok(text),
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    #[test]
    fn others_lose_their_rights_to_a_secret() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("superuser");
        std::fs::write(&path, "ada\nlove lace\r\n").unwrap();
        for (before, after) in [
            (0o644, 0o640),
            (0o666, 0o660),
            (0o601, 0o600),
            (0o640, 0o640),
            (0o400, 0o400),
        ] {
            std::fs::set_permissions(&path, Permissions::from_mode(before)).unwrap();
            let taken = take_from_others(&path).unwrap();
            assert_eq!(taken, before != after, "{before:o}");
            let mode = std::fs::metadata(&path).unwrap().permissions().mode();
            assert_eq!(mode & 0o7777, after, "{before:o}");
            assert_eq!(password(&path).unwrap().expose(), "ada\nlove lace");
        }
        assert!(!take_from_others(Path::new("/dev/null")).unwrap());
        let missing = take_from_others(&directory.path().join("none")).unwrap_err();
        assert!(missing.to_string().contains("none: "), "{missing}");
    }

    #[test]
    fn a_file_of_tokens_is_not_for_everybody() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("tokens");
        std::fs::write(&path, "ops 0123456789abcdef\n").unwrap();
        let with_mode = |mode| {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            (tokens(&path), first_token(&path))
        };
        for mode in [0o644, 0o604, 0o602] {
            let (Err(error), Err(_)) = with_mode(mode) else {
                panic!("{mode:o}");
            };
            assert!(error.to_string().contains("chmod 600"), "{error}");
        }
        for mode in [0o600, 0o640, 0o400] {
            let (set, first) = with_mode(mode);
            assert!(set.is_ok());
            assert_eq!(first.unwrap().expose(), "0123456789abcdef");
        }
    }

    /// Every source file of the workspace that is no test.
    fn sources(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") && !path.ends_with("target") {
                sources(&path, found);
            } else if path.extension().is_some_and(|end| end == "rs") {
                found.push(path);
            }
        }
    }

    /// Whether a line declares a field with a plain password, which `Debug` would print.
    fn keeps_it_open(line: &str) -> bool {
        let declared = line.trim().trim_start_matches("pub ");
        let Some((name, cql_type)) = declared.split_once(':') else {
            return false;
        };
        let is_secret = ["password", "passphrase", "secret", "token"].contains(&name.trim());
        let holds_text = ["String", "Bytes", "Vec<u8>", "str>", "[u8]"]
            .iter()
            .any(|text| cql_type.contains(text));
        is_secret && holds_text && line.ends_with(',') && !cql_type.contains("Secret<")
    }

    #[test]
    fn no_field_keeps_a_password_where_debug_prints_it() {
        assert!(keeps_it_open("    pub password: Option<String>,"));
        assert!(!keeps_it_open("    pub password: Secret<String>,"));
        let mut found = Vec::new();
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        sources(&crates, &mut found);
        assert!(found.len() > 100, "{}", found.len());
        for path in found {
            let text = std::fs::read_to_string(&path).unwrap();
            let open: Vec<&str> = text.lines().filter(|line| keeps_it_open(line)).collect();
            assert!(open.is_empty(), "{}: {open:?}", path.display());
        }
    }
}
