//! Logins at servers, and TLS to them: the options, and the contents of the files that they name.
//!
//! All servers of a command get one login and are believed by one authority. The options come only
//! from the command line, never from variables, so that no server gets a password by accident.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::ensure;
use clap::Args;
use cql::secret::Secret;
use credentials::authorization::{basic, bearer};
use credentials::files;
use hyper::header::HeaderValue;
use rustls::ClientConfig;
use scylla::client::session::TlsContext;
use scylla::client::session_builder::SessionBuilder;

use super::http_server::{ApiServer, ServerUrl};

/// The arguments by which requests log in, and by which servers are believed.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Login and TLS")]
pub struct AccessArguments {
    /// Role as which to log in, by CQL and by HTTP
    #[arg(long, value_name = "ROLE", requires = "password_file")]
    pub user: Option<String>,
    /// File with the password of that role
    #[arg(long, value_name = "FILE", requires = "user")]
    pub password_file: Option<PathBuf>,
    /// File with a token, for an HTTP server with tokens (`annulus store`); by HTTP it is sent
    /// in place of the role
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Authorities that sign the servers' certificates, PEM (ca.pem of `annulus certificate`): CQL
    /// is spoken under TLS then, and HTTP at https://
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Certificate that proves to the servers who the client is, PEM, if they require one
    #[arg(long, value_name = "FILE", requires_all = ["key", "ca"])]
    pub cert: Option<PathBuf>,
    /// Key of that certificate, PEM
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub key: Option<PathBuf>,
}

impl AccessArguments {
    /// Reads the files.
    ///
    /// # Errors
    /// If one of them can't be used.
    pub fn read(&self) -> anyhow::Result<RequestCredentials> {
        let login = match (&self.user, &self.password_file) {
            (Some(user), Some(file)) => Some((user.clone(), files::password(file)?)),
            _ => None,
        };
        let authorization = match (&self.token_file, &self.user, &self.password_file) {
            (Some(tokens), ..) => Some(bearer(tokens)?),
            (None, Some(user), Some(file)) => Some(basic(user, file)?),
            _ => None,
        };
        Ok(RequestCredentials {
            login,
            authorization,
            tls: self.tls()?,
            has_certificate: self.cert.is_some(),
        })
    }

    fn tls(&self) -> anyhow::Result<Option<Arc<ClientConfig>>> {
        let Some(authorities) = &self.ca else {
            return Ok(None);
        };
        let own = match (&self.cert, &self.key) {
            (Some(certificate), Some(key)) => Some((files::pem(certificate)?, files::pem(key)?)),
            _ => None,
        };
        let own = own.as_ref().map(|(certificate, key)| (certificate, key));
        Ok(Some(net::tls::client(&files::pem(authorities)?, own)?))
    }
}

/// The login and the TLS of requests.
#[derive(Clone, Debug, Default)]
pub struct RequestCredentials {
    login: Option<(String, Secret<String>)>,
    authorization: Option<HeaderValue>,
    tls: Option<Arc<ClientConfig>>,
    /// Whether it shows a certificate of its own.
    has_certificate: bool,
}

impl RequestCredentials {
    /// Begins a session of the CQL server at `HOST:PORT`.
    ///
    /// # Errors
    /// If there is a password that the server would not look at, as the certificate by itself lets
    /// its role in.
    pub async fn session(&self, address: &str) -> anyhow::Result<SessionBuilder> {
        let builder = SessionBuilder::new()
            .known_node(address)
            .tls_context(self.tls.clone().map(TlsContext::Rustls023));
        let Some((user, password)) = &self.login else {
            return Ok(builder);
        };
        // A server answers such a certificate with READY, after which no password can be sent.
        let is_let_in = self.has_certificate && builder.clone().build().await.is_ok();
        ensure!(
            !is_let_in,
            "the certificate of --cert lets its role in at {address}, and the password of {user} is not looked at: \
             leave out --user, or show a certificate whose identity has no role"
        );
        Ok(builder.user(user, password.expose()))
    }

    /// The HTTP server at a URL.
    ///
    /// # Errors
    /// If the URL is for TLS, and there is no authority to believe.
    pub fn server(&self, url: &ServerUrl) -> anyhow::Result<ApiServer> {
        ensure!(
            !url.is_secure() || self.tls.is_some(),
            "{url}: name the authorities that sign the server's certificate with --ca"
        );
        Ok(ApiServer {
            url: url.clone(),
            tls: self.tls.clone().filter(|_| url.is_secure()),
            authorization: self.authorization.clone(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_under_tls_needs_an_authority() {
        let access = RequestCredentials::default();
        access.server(&"http://h:1".parse().unwrap()).unwrap();
        let refused = access.server(&"https://h:1".parse().unwrap()).unwrap_err();
        assert!(refused.to_string().contains("--ca"), "{refused}");
    }

    #[test]
    fn a_token_stands_for_the_role_by_http() {
        let directory = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = directory.path().join(name);
            credentials_file(&path, text);
            Some(path)
        };
        let arguments = AccessArguments {
            user: Some("app".to_owned()),
            password_file: file("password", "secret\n"),
            ..AccessArguments::default()
        };
        let access = arguments.read().unwrap();
        assert!(!format!("{access:?}").contains("secret"));
        assert!(
            access
                .authorization
                .unwrap()
                .to_str()
                .unwrap()
                .starts_with("Basic ")
        );
        let arguments = AccessArguments {
            token_file: file("tokens", "0123456789abcdef\n"),
            ..arguments
        };
        let access = arguments.read().unwrap();
        assert_eq!(access.authorization.unwrap(), "Bearer 0123456789abcdef");
        assert_eq!(access.login.unwrap().0, "app");
    }

    /// Writes a file that only its owner reads.
    fn credentials_file(path: &std::path::Path, text: &str) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::write(path, text).unwrap();
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
}
