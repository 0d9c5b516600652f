//! Settings of providers: variables of the environment, and a file that goes before them.

use std::collections::BTreeMap;
use std::path::Path;

use crate::error::BackupError;
use crate::files;

/// Begins of the names that are settings of a provider.
const BEGINS: [&str; 4] = ["AWS_", "AZURE_", "GOOGLE_", "STORAGE_EMULATOR_HOST"];

/// Names that prove who is calling. Where a file has one of a provider, those of the environment
/// are not used: halves of two identities would be refused.
const SECRETS: [&str; 22] = [
    "AWS_ACCESS_KEY_ID",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_ROLE_ARN",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AZURE_CLIENT_SECRET",
    "AZURE_FEDERATED_TOKEN_FILE",
    "AZURE_STORAGE_ACCESS_KEY",
    "AZURE_STORAGE_ACCOUNT_KEY",
    "AZURE_STORAGE_KEY",
    "AZURE_STORAGE_SAS_KEY",
    "AZURE_STORAGE_SAS_TOKEN",
    "AZURE_STORAGE_TOKEN",
    "GOOGLE_APPLICATION_CREDENTIALS",
    "GOOGLE_BEARER_TOKEN",
    "GOOGLE_SERVICE_ACCOUNT",
    "GOOGLE_SERVICE_ACCOUNT_KEY",
    "GOOGLE_SERVICE_ACCOUNT_PATH",
];

/// The longest file that is read.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// Values by the names of their variables.
pub type ProviderSettings = BTreeMap<String, String>;

/// Reads the settings as they are now.
pub fn read(file: Option<&Path>) -> Result<ProviderSettings, BackupError> {
    let pairs = std::env::vars_os();
    let pairs = pairs
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let of_environment = pairs.filter(|(name, value)| {
        !value.is_empty() && BEGINS.iter().any(|begin| name.starts_with(begin))
    });
    let of_environment = of_environment.collect();
    match file {
        None => Ok(of_environment),
        Some(file) => Ok(merged(of_environment, read_file(file)?)),
    }
}

/// Whether a name is that of a proof of who is calling.
pub fn is_secret(name: &str) -> bool {
    SECRETS.contains(&name)
}

fn provider(name: &str) -> &str {
    name.split_once('_').map_or(name, |(provider, _)| provider)
}

fn merged(mut settings: ProviderSettings, of_file: ProviderSettings) -> ProviderSettings {
    settings.retain(|name, _| {
        let replaces = |other: &String| is_secret(other) && provider(other) == provider(name);
        !(is_secret(name) && of_file.keys().any(replaces))
    });
    settings.extend(of_file);
    settings
}

fn read_file(file: &Path) -> Result<ProviderSettings, BackupError> {
    let wrong = |problem: String| BackupError::OptionFile {
        file: file.to_owned(),
        problem,
    };
    let bytes = files::read_option(file, FILE_BYTES_MAX)?;
    let text = String::from_utf8(bytes).map_err(|error| wrong(error.utf8_error().to_string()))?;
    let mut settings = ProviderSettings::new();
    for (line, number) in text.lines().zip(1..) {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let line = line.strip_prefix("export ").unwrap_or(line);
        // The line itself may be a secret, and is not shown.
        let Some((name, value)) = line.split_once('=') else {
            let problem = format!("line {number} is not NAME=VALUE, as AWS_ACCESS_KEY_ID=...");
            return Err(wrong(problem));
        };
        settings.insert(name.trim().to_owned(), unquoted(value.trim()).to_owned());
    }
    Ok(settings)
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote);
        if let Some(inner) = inner.and_then(|value| value.strip_suffix(quote)) {
            return inner;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(pairs: &[(&str, &str)]) -> ProviderSettings {
        let pairs = pairs.iter();
        pairs
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    #[test]
    fn a_file_has_comments_exports_and_quotes() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("credentials");
        let text = "# of the team\n\nAWS_ACCESS_KEY_ID = key\nexport AWS_SECRET_ACCESS_KEY='a=b'\n";
        std::fs::write(&file, text).unwrap();
        let expected = [
            ("AWS_ACCESS_KEY_ID", "key"),
            ("AWS_SECRET_ACCESS_KEY", "a=b"),
        ];
        assert_eq!(read_file(&file).unwrap(), settings(&expected));
        std::fs::write(&file, "AWS_ACCESS_KEY_ID=key\nsecret words\n").unwrap();
        let error = read_file(&file).unwrap_err().to_string();
        assert!(
            error.contains("line 2") && !error.contains("secret words"),
            "{error}"
        );
    }

    #[test]
    fn identities_are_not_mixed() {
        let of_environment = settings(&[
            ("AWS_ACCESS_KEY_ID", "old"),
            ("AWS_SESSION_TOKEN", "old"),
            ("AWS_REGION", "eu-west-1"),
            ("AZURE_STORAGE_ACCOUNT_KEY", "other"),
        ]);
        let of_file = settings(&[
            ("AWS_ACCESS_KEY_ID", "new"),
            ("AWS_SECRET_ACCESS_KEY", "new"),
        ]);
        let expected = settings(&[
            ("AWS_ACCESS_KEY_ID", "new"),
            ("AWS_SECRET_ACCESS_KEY", "new"),
            ("AWS_REGION", "eu-west-1"),
            ("AZURE_STORAGE_ACCOUNT_KEY", "other"),
        ]);
        assert_eq!(merged(of_environment, of_file), expected);
    }

    #[test]
    fn secrets_are_sorted_and_of_known_providers() {
        assert!(SECRETS.is_sorted());
        let is_known = |name: &&str| BEGINS.iter().any(|begin| name.starts_with(begin));
        assert!(SECRETS.iter().all(is_known));
    }
}
