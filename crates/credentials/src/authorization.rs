//! Values of the header `Authorization`, by which a request over HTTP says who sends it.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hyper::header::HeaderValue;

use crate::FileError;
use crate::files;

/// The login of a role as HTTP Basic (RFC 7617), with the password in this file.
///
/// # Errors
/// If the file can't be read.
pub fn basic(role: &str, password: &Path) -> Result<HeaderValue, FileError> {
    let secret = files::password(password)?;
    let login = STANDARD.encode(format!("{role}:{}", secret.expose()));
    header(format!("Basic {login}"), password)
}

/// The first token of this file as a bearer's (RFC 6750).
///
/// # Errors
/// If the file can't be read, has no token, or is open to every user of the machine.
pub fn bearer(tokens: &Path) -> Result<HeaderValue, FileError> {
    let token = files::first_token(tokens)?;
    header(format!("Bearer {}", token.expose()), tokens)
}

fn header(text: String, file: &Path) -> Result<HeaderValue, FileError> {
    let mut header = HeaderValue::try_from(text)
        .map_err(|_| FileError::new(file, "what is in the file can't stand in a header of HTTP"))?;
    header.set_sensitive(true);
    Ok(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_is_basic_and_not_printed() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("password");
        std::fs::write(&file, "open sesame\n").unwrap();
        let header = basic("ali", &file).unwrap();
        assert_eq!(header.to_str().unwrap(), "Basic YWxpOm9wZW4gc2VzYW1l");
        assert!(!format!("{header:?}").contains("YWxp"));
        let missing = basic("ali", &directory.path().join("none")).unwrap_err();
        assert!(missing.to_string().contains("none: "), "{missing}");
    }
}
