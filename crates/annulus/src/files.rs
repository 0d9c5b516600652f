//! Reading the files that settings name.

use std::path::Path;

use net::tls::Pem;
use store::Secret;

use crate::exit::Failure;

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    std::fs::read(path)
        .map_err(|error| Failure::Configuration(format!("{}: {error}", path.display())))
}

/// Reads certificates or a key.
pub fn pem(path: &Path) -> Result<Pem, Failure> {
    Ok(Pem {
        bytes: read(path)?.into(),
        origin: path.display().to_string(),
    })
}

/// Reads a password, without the line break at its end.
pub fn password(path: &Path) -> Result<Secret<String>, Failure> {
    let text = String::from_utf8(read(path)?).map_err(|_| {
        Failure::Configuration(format!("{}: the password is not UTF-8", path.display()))
    })?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned().into())
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

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
