//! Stores of the providers, made of a location's text and of settings.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GcpCredential, GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::local::LocalFileSystem;
use object_store::memory::InMemory;
use object_store::path::Path as ObjectPath;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, RetryConfig, StaticCredentialProvider};

use crate::error::BackupError;
use crate::exchange::StoreConnector;
use crate::files;
use crate::layout;
use crate::location::{LocationAccess, LocationOptions, LocationPlace, LocationText};
use crate::settings::{self, ProviderSettings};

/// Other names of settings, which the tools of the providers know, by those of `object_store`.
const ALIASES: [(&str, &str); 2] = [
    ("AZURE_STORAGE_ACCOUNT", "azure_storage_account_name"),
    ("AZURE_STORAGE_KEY", "azure_storage_account_key"),
];

/// Opens the store of a location again, with the settings of then.
pub enum StoreProvider {
    /// As the options say.
    Options(Box<ProviderOptions>),
    /// Always this store.
    Given(Arc<dyn ObjectStore>),
}

/// The options that a store is made of, and its HTTP client if it is none of files.
pub struct ProviderOptions {
    options: LocationOptions,
    connector: Option<StoreConnector>,
}

impl StoreProvider {
    /// Checks what the options name. A missing directory is made if `access` says so.
    pub fn new(
        options: &LocationOptions,
        access: LocationAccess,
    ) -> Result<StoreProvider, BackupError> {
        let connector = match options.location.place() {
            // Nothing is there, and nothing is to be written.
            LocationPlace::Directory(path) if access == LocationAccess::Plan && !path.exists() => {
                return Ok(StoreProvider::Given(Arc::new(InMemory::new())));
            }
            LocationPlace::Directory(path) => {
                directory(&options.location, path, access)?;
                None
            }
            _ => Some(StoreConnector::new(
                options.ca.as_deref(),
                options.allow_http,
            )?),
        };
        Ok(StoreProvider::Options(Box::new(ProviderOptions {
            options: options.clone(),
            connector,
        })))
    }

    /// The present settings, of which a store is made.
    pub fn settings(&self) -> Result<ProviderSettings, BackupError> {
        match self {
            StoreProvider::Options(of) if of.connector.is_some() => {
                settings::read(of.options.credentials.as_deref())
            }
            _ => Ok(ProviderSettings::new()),
        }
    }

    /// Makes a store of settings.
    pub fn open(&self, settings: &ProviderSettings) -> Result<Arc<dyn ObjectStore>, BackupError> {
        let of = match self {
            StoreProvider::Given(store) => return Ok(store.clone()),
            StoreProvider::Options(of) => of,
        };
        let location = &of.options.location;
        let (opened, prefix) = match (location.place(), &of.connector) {
            (LocationPlace::S3 { bucket, prefix }, Some(connector)) => {
                (s3(bucket, settings, connector), prefix.clone())
            }
            (LocationPlace::Gcs { bucket, prefix }, Some(connector)) => {
                (gcs(bucket, settings, connector), prefix.clone())
            }
            (LocationPlace::Azure { names }, Some(connector)) => {
                let blobs = AzureNames::of(names, settings);
                (azure(&blobs, settings, connector), blobs.prefix)
            }
            (LocationPlace::Directory(path), _) => (local(path), String::new()),
            (_, None) => return Err(wrong(location, "it has no HTTP client".to_owned())),
        };
        let store = opened.map_err(|error| wrong(location, explained(&error)))?;
        if prefix.is_empty() {
            return Ok(store);
        }
        let prefix =
            ObjectPath::parse(&prefix).map_err(|error| wrong(location, error.to_string()))?;
        Ok(Arc::new(PrefixStore::new(store, prefix)))
    }
}

fn wrong(location: &LocationText, problem: String) -> BackupError {
    BackupError::Settings {
        location: location.to_string(),
        problem,
    }
}

fn explained(error: &object_store::Error) -> String {
    format!("{error}: check the variables of the environment, or of the file of --credentials")
}

fn directory(
    location: &LocationText,
    path: &Path,
    access: LocationAccess,
) -> Result<(), BackupError> {
    match access {
        LocationAccess::Write => {
            // In a directory that was there before the folders are private all the same.
            let folders = [layout::META, layout::SCHEMA, layout::DATA];
            let mut folders = folders.iter().map(|folder| path.join(folder));
            folders.try_for_each(|folder| files::make_private(&folder))
        }
        _ if path.is_dir() => Ok(()),
        _ => Err(BackupError::NoDirectory {
            location: location.to_string(),
        }),
    }
}

fn local(path: &Path) -> object_store::Result<Arc<dyn ObjectStore>> {
    let store = LocalFileSystem::new_with_prefix(path)?.with_fsync(true);
    Ok(Arc::new(store))
}

/// Attempts are made again by the module `objects` alone.
fn no_retries() -> RetryConfig {
    RetryConfig {
        max_retries: 0,
        retry_timeout: Duration::from_secs(180),
        ..RetryConfig::default()
    }
}

/// The settings with the names that `object_store` knows.
fn known_names(settings: &ProviderSettings) -> impl Iterator<Item = (String, &String)> {
    settings.iter().map(|(name, value)| {
        let alias = ALIASES.iter().find(|(alias, _)| alias == name);
        let known = alias.map(|(_, known)| (*known).to_owned());
        (known.unwrap_or_else(|| name.to_lowercase()), value)
    })
}

fn s3(
    bucket: &str,
    settings: &ProviderSettings,
    connector: &StoreConnector,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut builder = AmazonS3Builder::new();
    for (name, value) in known_names(settings) {
        if let Ok(key) = name.parse::<AmazonS3ConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    let builder = builder
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        .with_http_connector(connector.clone());
    Ok(Arc::new(builder.build()?))
}

fn gcs(
    bucket: &str,
    settings: &ProviderSettings,
    connector: &StoreConnector,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut builder = GoogleCloudStorageBuilder::new();
    for (name, value) in known_names(settings) {
        if let Ok(key) = name.parse::<GoogleConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(host) = settings.get("STORAGE_EMULATOR_HOST") {
        let has_scheme = host.contains("://");
        let scheme = if has_scheme { "" } else { "http://" };
        builder = builder.with_base_url(&format!("{scheme}{host}"));
        let is_identity = |name: &String| settings::is_secret(name) && name.starts_with("GOOGLE_");
        if !settings.keys().any(is_identity) {
            // Of requests that write, object_store signs all: they get a token that says nothing.
            let token = GcpCredential {
                bearer: "anonymous".to_owned(),
            };
            let anonymous = StaticCredentialProvider::new(token);
            builder = builder
                .with_skip_signature(true)
                .with_credentials(Arc::new(anonymous));
        }
    }
    let builder = builder
        .with_bucket_name(bucket)
        .with_retry(no_retries())
        .with_http_connector(connector.clone());
    Ok(Arc::new(builder.build()?))
}

fn azure(
    names: &AzureNames,
    settings: &ProviderSettings,
    connector: &StoreConnector,
) -> object_store::Result<Arc<dyn ObjectStore>> {
    let mut builder = MicrosoftAzureBuilder::new();
    for (name, value) in known_names(settings) {
        if let Ok(key) = name.parse::<AzureConfigKey>() {
            builder = builder.with_config(key, value);
        }
    }
    if let Some(account) = &names.account {
        builder = builder.with_account(account);
    }
    let builder = builder
        .with_container_name(&names.container)
        .with_retry(no_retries())
        .with_http_connector(connector.clone());
    Ok(Arc::new(builder.build()?))
}

/// The meaning of the names of a location at Azure.
#[derive(Debug, PartialEq, Eq)]
struct AzureNames {
    account: Option<String>,
    container: String,
    prefix: String,
}

impl AzureNames {
    /// The first name is the account if the settings name none, or the same, and another follows.
    fn of(names: &[String], settings: &ProviderSettings) -> AzureNames {
        let variables = ["AZURE_STORAGE_ACCOUNT_NAME", "AZURE_STORAGE_ACCOUNT"];
        let account = variables.iter().find_map(|name| settings.get(*name));
        let (first, rest) = match names {
            [first, rest @ ..] => (first.clone(), rest),
            [] => (String::new(), names),
        };
        match rest {
            [container, prefix @ ..] if account.is_none_or(|account| *account == first) => {
                AzureNames {
                    account: Some(first),
                    container: container.clone(),
                    prefix: prefix.join("/"),
                }
            }
            _ => AzureNames {
                account: None,
                container: first,
                prefix: rest.join("/"),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> ProviderSettings {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn provider(location: &str) -> StoreProvider {
        let options = LocationOptions::new(location.parse().unwrap());
        StoreProvider::new(&options, LocationAccess::Read).unwrap()
    }

    #[test]
    fn names_of_azure_have_an_account_or_not() {
        let names = ["a".to_owned(), "b".to_owned(), "c".to_owned()];
        let of = |pairs: &[(&str, &str)]| AzureNames::of(&names, &settings(pairs));
        let whole = AzureNames {
            account: Some("a".to_owned()),
            container: "b".to_owned(),
            prefix: "c".to_owned(),
        };
        assert_eq!(of(&[]), whole);
        assert_eq!(of(&[("AZURE_STORAGE_ACCOUNT_NAME", "a")]), whole);
        let of_other = of(&[("AZURE_STORAGE_ACCOUNT", "x")]);
        assert_eq!((of_other.account, of_other.container.as_str()), (None, "a"));
        assert_eq!(of_other.prefix, "b/c");
    }

    #[test]
    fn stores_are_made_of_the_usual_variables() {
        let of_s3 = settings(&[
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "secret"),
            ("AWS_ENDPOINT_URL", "http://127.0.0.1:9000"),
            ("AWS_UNKNOWN_VARIABLE", "x"),
        ]);
        provider("s3:bucket/a").open(&of_s3).unwrap();
        let of_gcs = settings(&[("STORAGE_EMULATOR_HOST", "127.0.0.1:4443")]);
        provider("gcs:bucket/a").open(&of_gcs).unwrap();
        let of_azure = settings(&[
            ("AZURE_STORAGE_ACCOUNT", "account"),
            ("AZURE_STORAGE_KEY", "c2VjcmV0"),
            ("AZURE_STORAGE_ENDPOINT", "http://127.0.0.1:10000/account"),
        ]);
        provider("azure:container/a").open(&of_azure).unwrap();
    }

    #[test]
    fn half_an_identity_is_refused_with_the_remedy() {
        let half = settings(&[("AWS_ACCESS_KEY_ID", "key")]);
        let error = provider("s3:bucket/a").open(&half).unwrap_err();
        assert!(error.to_string().contains("--credentials"), "{error}");
    }

    #[test]
    fn a_missing_directory_is_made_or_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        let location = format!("file://{}", path.display());
        let options = LocationOptions::new(location.parse().unwrap());
        let error = StoreProvider::new(&options, LocationAccess::Read).err();
        let error = error.unwrap().to_string();
        assert!(error.contains("no such directory"), "{error}");
        let planned = StoreProvider::new(&options, LocationAccess::Plan);
        assert!(matches!(planned, Ok(StoreProvider::Given(_))));
        assert!(!path.exists());
        let access = LocationAccess::Write;
        let made = StoreProvider::new(&options, access).unwrap();
        assert!(path.is_dir());
        made.open(&ProviderSettings::new()).unwrap();
        for folder in ["", "meta", "schema", "data"] {
            let metadata = std::fs::metadata(path.join(folder)).unwrap();
            assert_eq!(metadata.permissions().mode() & 0o777, 0o700, "{folder}");
        }
    }
}
