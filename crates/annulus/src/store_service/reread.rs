//! Settings and files that are read again while the service runs.

use std::path::PathBuf;

use http_server::TokenSet;

use super::settings::StoreSettings;
use super::{IndexServiceSettings, ServiceHost, sources};
use crate::exit::ProcessFailure;

/// The sources of settings that are read again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettingSources {
    /// All of them.
    All,
    /// None: the files that the settings in effect name.
    InEffect,
}

/// Settings and tokens that were read again, each with a failure of its own.
pub struct ReloadedSettings {
    /// The file of the tokens; `None` if none is named.
    pub token_file: Option<PathBuf>,
    /// The tokens in it.
    pub tokens: Result<Option<TokenSet>, ProcessFailure>,
    /// All else.
    pub settings: Result<IndexServiceSettings, ProcessFailure>,
}

impl ReloadedSettings {
    /// Reads the sources and the files that they name. If the sources can't be used, the tokens are
    /// those of the settings in effect.
    pub fn read(
        host: ServiceHost,
        in_effect: StoreSettings,
        from: SettingSources,
    ) -> ReloadedSettings {
        match from {
            SettingSources::InEffect => ReloadedSettings::of(host, in_effect),
            SettingSources::All => match sources::read(&host) {
                Ok(set) => {
                    let shown = sources::shown(&host).ok();
                    let read = ReloadedSettings::of(host, set);
                    let settings = read.settings;
                    ReloadedSettings {
                        settings: settings.map(|read| IndexServiceSettings { shown, ..read }),
                        ..read
                    }
                }
                Err(failure) => ReloadedSettings {
                    settings: Err(failure),
                    ..ReloadedSettings::of(host, in_effect)
                },
            },
        }
    }

    fn of(host: ServiceHost, set: StoreSettings) -> ReloadedSettings {
        ReloadedSettings {
            token_file: set.token_file.clone(),
            tokens: set.tokens(),
            settings: IndexServiceSettings::resolve(host, set),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use clap::Parser as _;

    use super::*;

    #[derive(clap::Parser)]
    struct Line {
        #[command(flatten)]
        settings: StoreSettings,
    }

    fn reread(tokens: &Path, certificate: Option<&Path>) -> (bool, bool) {
        let mut line = vec!["annulus".into(), "--token-file".into(), tokens.to_owned()];
        for flag in ["--tls-cert-path", "--tls-key-path"] {
            let path = certificate.map(|path| [flag.into(), path.to_owned()]);
            line.extend(path.into_iter().flatten());
        }
        let set = Line::parse_from(line).settings;
        let read = ReloadedSettings::read(
            ServiceHost::Alone(Vec::new()),
            set,
            SettingSources::InEffect,
        );
        assert_eq!(read.token_file.as_deref(), Some(tokens));
        (read.tokens.is_ok(), read.settings.is_ok())
    }

    #[test]
    fn tokens_and_certificates_do_not_wait_for_one_another() {
        let directory = tempfile::tempdir().unwrap();
        let (gone, tokens) = (
            directory.path().join("gone"),
            directory.path().join("tokens"),
        );
        std::fs::write(&tokens, "ops 0123456789abcdef\n").unwrap();
        std::fs::set_permissions(&tokens, std::fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(reread(&tokens, None), (true, true));
        assert_eq!(reread(&tokens, Some(&gone)), (true, false));
        assert_eq!(reread(&gone, None), (false, true));
    }
}
