//! Texts that name locations, and the options that go with them.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The forms of a location, for errors.
const FORMS: &str = "a location is s3:BUCKET/PREFIX, gcs:BUCKET/PREFIX, azure:ACCOUNT/CONTAINER/PREFIX \
                     or file:///DIRECTORY";

/// A text of an option is not of its form.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{text}`: {problem}")]
pub struct LocationTextError {
    /// The text.
    text: String,
    /// The fault, and the right form.
    problem: String,
}

impl LocationTextError {
    pub(crate) fn new(text: &str, problem: impl Into<String>) -> LocationTextError {
        LocationTextError {
            text: text.to_owned(),
            problem: problem.into(),
        }
    }
}

/// Where objects are, as a location's text says.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum LocationPlace {
    /// A bucket of S3 or of a server that speaks like it.
    S3 { bucket: String, prefix: String },
    /// A bucket of Google Cloud Storage.
    Gcs { bucket: String, prefix: String },
    /// Names of a blob container, which may begin with that of its account.
    Azure { names: Vec<String> },
    /// A directory.
    Directory(PathBuf),
}

/// The text of a location, checked: `s3:BUCKET/PREFIX`, `gcs:BUCKET/PREFIX`,
/// `azure:ACCOUNT/CONTAINER/PREFIX`, `azure:CONTAINER/PREFIX` or `file:///DIRECTORY`. It holds no
/// secrets.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LocationText(LocationPlace);

impl LocationText {
    pub(crate) fn place(&self) -> &LocationPlace {
        &self.0
    }

    /// Whether the location is a directory.
    #[must_use]
    pub fn is_file(&self) -> bool {
        matches!(self.0, LocationPlace::Directory(_))
    }
}

impl FromStr for LocationText {
    type Err = LocationTextError;

    fn from_str(text: &str) -> Result<LocationText, LocationTextError> {
        let wrong = |problem: String| LocationTextError::new(text, problem);
        let Some((scheme, rest)) = text.split_once(':') else {
            return Err(wrong(FORMS.to_owned()));
        };
        if text.chars().any(char::is_control) {
            return Err(wrong("it has a control character".to_owned()));
        }
        if scheme == "file" {
            let path = rest.strip_prefix("//").unwrap_or(rest);
            if !path.starts_with('/') {
                let problem = "a directory is named by its whole path, as in file:///var/backups";
                return Err(wrong(problem.to_owned()));
            }
            return Ok(LocationText(LocationPlace::Directory(PathBuf::from(path))));
        }
        if !["s3", "gcs", "azure"].contains(&scheme) {
            return Err(wrong(FORMS.to_owned()));
        }
        let rest = rest.trim_start_matches("//").trim_end_matches('/');
        let names: Vec<String> = rest.split('/').map(str::to_owned).collect();
        let is_wrong = |name: &String| ["", ".", ".."].contains(&name.as_str());
        if names.iter().any(is_wrong) {
            return Err(wrong(format!("a name between slashes is empty; {FORMS}")));
        }
        let place = match scheme {
            "azure" => LocationPlace::Azure { names },
            _ => {
                let (bucket, prefix) = rest.split_once('/').unwrap_or((rest, ""));
                let (bucket, prefix) = (bucket.to_owned(), prefix.to_owned());
                match scheme {
                    "s3" => LocationPlace::S3 { bucket, prefix },
                    _ => LocationPlace::Gcs { bucket, prefix },
                }
            }
        };
        Ok(LocationText(place))
    }
}

impl fmt::Display for LocationText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of_bucket = |f: &mut fmt::Formatter<'_>, scheme: &str, bucket: &str, prefix: &str| {
            let slash = if prefix.is_empty() { "" } else { "/" };
            write!(f, "{scheme}:{bucket}{slash}{prefix}")
        };
        match &self.0 {
            LocationPlace::S3 { bucket, prefix } => of_bucket(f, "s3", bucket, prefix),
            LocationPlace::Gcs { bucket, prefix } => of_bucket(f, "gcs", bucket, prefix),
            LocationPlace::Azure { names } => write!(f, "azure:{}", names.join("/")),
            LocationPlace::Directory(path) => write!(f, "file://{}", path.display()),
        }
    }
}

impl TryFrom<String> for LocationText {
    type Error = LocationTextError;

    fn try_from(text: String) -> Result<LocationText, LocationTextError> {
        text.parse()
    }
}

impl From<LocationText> for String {
    fn from(location: LocationText) -> String {
        location.to_string()
    }
}

/// How chunks are compressed. Chunks that compression doesn't make smaller are stored as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ChunkCompression {
    /// Not at all.
    None,
    /// By Zstandard at level 1.
    #[default]
    Zstd,
}

impl FromStr for ChunkCompression {
    type Err = LocationTextError;

    fn from_str(text: &str) -> Result<ChunkCompression, LocationTextError> {
        match text {
            "none" => Ok(ChunkCompression::None),
            "zstd" => Ok(ChunkCompression::Zstd),
            _ => Err(LocationTextError::new(
                text,
                "the compression is zstd or none",
            )),
        }
    }
}

impl fmt::Display for ChunkCompression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            ChunkCompression::None => "none",
            ChunkCompression::Zstd => "zstd",
        })
    }
}

/// A location, and how to reach and read it.
#[derive(Clone, Debug)]
pub struct LocationOptions {
    /// The location.
    pub location: LocationText,
    /// A PEM file of the authorities that the store's certificate may be signed by. `None`: those
    /// that the system trusts.
    pub ca: Option<PathBuf>,
    /// A file of lines `NAME=VALUE`, which go before variables of the environment.
    pub credentials: Option<PathBuf>,
    /// Whether a store on another machine may be reached without encryption.
    pub allow_http: bool,
    /// The file of the encryption key: 64 hex digits, or 32 bytes.
    pub key_file: Option<PathBuf>,
    /// The compression of chunks that are written.
    pub compression: ChunkCompression,
}

impl LocationOptions {
    /// A location with the defaults of all else.
    #[must_use]
    pub fn new(location: LocationText) -> LocationOptions {
        LocationOptions {
            location,
            ca: None,
            credentials: None,
            allow_http: false,
            key_file: None,
            compression: ChunkCompression::default(),
        }
    }
}

/// The purpose of opening a location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LocationAccess {
    /// Points are listed, verified or downloaded. The location must be one.
    Read,
    /// It is looked up what a backup would send. A directory that is missing has nothing in it.
    Plan,
    /// Points are written. A directory that is missing is made.
    Write,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_are_written_as_they_are_read() {
        for text in [
            "s3:bucket/a/b",
            "s3:bucket",
            "gcs:bucket/a",
            "azure:account/container/a",
            "azure:container",
            "file:///var/backups",
        ] {
            let location: LocationText = text.parse().unwrap();
            assert_eq!(location.to_string(), text);
        }
        let location: LocationText = "s3://bucket/a/".parse().unwrap();
        assert_eq!(location.to_string(), "s3:bucket/a");
        assert!(!location.is_file());
    }

    #[test]
    fn locations_of_no_form_are_refused_with_the_forms() {
        for text in [
            "bucket",
            "s3:",
            "s3:/a",
            "gcs:b//c",
            "azure:",
            "ftp:host/a",
            "file://relative",
            "s3:b/../c",
            "s3:b\n",
        ] {
            let error = text.parse::<LocationText>().unwrap_err();
            assert!(error.to_string().starts_with('`'), "{error}");
        }
    }

    #[test]
    fn compressions_have_two_names() {
        for name in ["none", "zstd"] {
            assert_eq!(name.parse::<ChunkCompression>().unwrap().to_string(), name);
        }
        assert!("gzip".parse::<ChunkCompression>().is_err());
    }
}
