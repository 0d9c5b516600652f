//! The location of backups, as flags.

use std::path::{Path, PathBuf};

use backup::{LocationOptions, LocationText};
use backup_tasks::{ClientWork, QueriesFirst};
use clap::{Args, ValueEnum};
use store_api::types::{BackupCompression, BackupPlace};

use crate::exit::ProcessFailure;

/// The compression of the pieces of a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum CompressionName {
    /// None
    None,
    /// Zstandard
    Zstd,
}

/// A location of backups. Each command about one takes these flags.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Location")]
pub struct LocationFlags {
    /// Location: s3:BUCKET/PREFIX, gcs:BUCKET/PREFIX, azure:CONTAINER/PREFIX or file:///DIR
    #[arg(
        long,
        env = "ANNULUS_BACKUP_LOCATION",
        value_name = "LOCATION",
        global = true
    )]
    location: Option<String>,

    /// Authorities that sign the certificate of the object storage, PEM, if it has one of its own
    #[arg(
        long,
        env = "ANNULUS_BACKUP_LOCATION_CA",
        value_name = "FILE",
        global = true
    )]
    location_ca: Option<PathBuf>,

    /// File with credentials, in lines such as AWS_ACCESS_KEY_ID=...; without it those of the
    /// environment are used
    #[arg(
        long,
        env = "ANNULUS_BACKUP_CREDENTIALS",
        value_name = "FILE",
        global = true
    )]
    credentials: Option<PathBuf>,

    /// Use an endpoint beyond this machine without TLS
    #[arg(long, global = true)]
    allow_http: bool,

    /// File with the key that encrypts what is stored. Without it the backup is lost
    #[arg(
        long,
        env = "ANNULUS_BACKUP_KEY_FILE",
        value_name = "FILE",
        global = true
    )]
    key_file: Option<PathBuf>,

    /// Compression of what is stored [default: zstd]
    #[arg(long, value_name = "COMPRESSION", global = true)]
    compression: Option<CompressionName>,

    /// The most MiB that are transferred in a second [default: no limit; queries go first]
    #[arg(long, value_name = "MIB", value_parser = clap::value_parser!(u64).range(1..), global = true)]
    max_mib_per_second: Option<u64>,
}

impl LocationFlags {
    /// The location as the API takes it. Paths are made absolute, as another process may open them.
    ///
    /// # Errors
    /// If there is no location, or its text can't be read.
    pub fn place(&self) -> Result<BackupPlace, ProcessFailure> {
        let Some(location) = &self.location else {
            return Err(ProcessFailure::Configuration(
                "name the location of the backups with --location, such as s3:BUCKET/PREFIX or file:///DIR"
                    .to_owned(),
            ));
        };
        let parsed: Result<LocationText, _> = location.parse();
        let location = parsed.map_err(|error| ProcessFailure::Configuration(error.to_string()))?;
        let path = |path: Option<&PathBuf>| path.map(|path| absolute(path)).transpose();
        Ok(BackupPlace {
            location: location.to_string(),
            location_ca: path(self.location_ca.as_ref())?,
            credentials: path(self.credentials.as_ref())?,
            allow_http: self.allow_http,
            key_file: path(self.key_file.as_ref())?,
            compression: self.compression.map(|name| match name {
                CompressionName::None => BackupCompression::None,
                CompressionName::Zstd => BackupCompression::Zstd,
            }),
            max_mib_per_second: self.max_mib_per_second,
        })
    }

    /// The location for this process.
    ///
    /// # Errors
    /// If there is none, or its text can't be read.
    pub fn options(&self) -> Result<LocationOptions, ProcessFailure> {
        let options = backup_tasks::location_options(&self.place()?);
        options.map_err(|error| ProcessFailure::Configuration(error.to_string()))
    }

    /// The pace of transfers of this process, which has no queries.
    pub fn pace(&self) -> QueriesFirst {
        QueriesFirst::new(ClientWork::default(), self.max_mib_per_second)
    }
}

/// A path as another process on this machine understands it.
///
/// # Errors
/// If it can't be made absolute, or is no text.
pub fn absolute(path: &Path) -> Result<String, ProcessFailure> {
    let failed = |why: &dyn std::fmt::Display| {
        ProcessFailure::Configuration(format!("{}: {why}", path.display()))
    };
    let whole = std::path::absolute(path).map_err(|error| failed(&error))?;
    let text = whole.to_str().map(str::to_owned);
    text.ok_or_else(|| failed(&"it is no text in UTF-8"))
}
