//! The commands that send requests to a running service: `annulus tasks`, `annulus repair`,
//! `annulus status`, `annulus check`, `annulus scrub`, `annulus maintenance`, `annulus backup`.

pub mod check;
mod indexes;
pub mod maintenance;
pub mod progress;
mod recall;
pub mod repair;
pub mod status;
pub mod task_commands;
pub mod text_table;

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use credentials::authorization::{basic, bearer};
use credentials::files::pem;
use hyper::header::HeaderValue;
use serde::Serialize;
use store_api::{ClientError, ClientOptions, StoreClient};
use tools::CqlFlags;

use crate::exit::ProcessFailure;
use crate::output;

/// The longest time that an answer may take, unless a command waits on purpose.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(10);

/// The longest time that a connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// The service to talk to where none is named.
const DEFAULT_SERVICE: &str = "http://127.0.0.1:6080";

/// The service to talk to, and the form of the answer.
#[derive(Args, Clone, Debug)]
pub struct ServiceArguments {
    /// URL of the service's HTTP API
    #[arg(
        long,
        env = "ANNULUS_HTTP",
        value_name = "http[s]://HOST:PORT",
        default_value = DEFAULT_SERVICE,
        global = true
    )]
    http: String,

    /// Authorities that sign the service's certificate, PEM (ca.pem of `annulus certificate`); for
    /// https://
    #[arg(
        long,
        visible_alias = "ca",
        env = "ANNULUS_HTTP_CA_CERT_PATH",
        value_name = "FILE",
        global = true
    )]
    http_ca_cert_path: Option<PathBuf>,

    /// Certificate that proves to the service who the client is, PEM, if the service requires one
    #[arg(
        long,
        visible_alias = "cert",
        env = "ANNULUS_HTTP_CERT_PATH",
        value_name = "FILE",
        requires = "http_key_path",
        global = true
    )]
    http_cert_path: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(
        long,
        visible_alias = "key",
        env = "ANNULUS_HTTP_KEY_PATH",
        value_name = "FILE",
        requires = "http_cert_path",
        global = true
    )]
    http_key_path: Option<PathBuf>,

    /// Role of the database to log in as, for a service with --login
    #[arg(
        long,
        env = "ANNULUS_HTTP_USER",
        value_name = "ROLE",
        requires = "password_file",
        global = true
    )]
    user: Option<String>,

    /// File with the password of that role
    #[arg(
        long,
        env = "ANNULUS_HTTP_PASSWORD_FILE",
        value_name = "FILE",
        requires = "user",
        global = true
    )]
    password_file: Option<PathBuf>,

    /// File with a token, for an index service beyond a loopback address (`annulus store`); the
    /// first token of a file with several. With --user it has no effect
    #[arg(
        long,
        env = "ANNULUS_HTTP_TOKEN_FILE",
        value_name = "FILE",
        global = true
    )]
    token_file: Option<PathBuf>,

    /// Print the answer as JSON, as the HTTP API gives it
    #[arg(long, global = true)]
    json: bool,
}

impl ServiceArguments {
    /// Takes the service at this URL for the default one.
    #[must_use]
    pub fn with_default_service(self, url: String) -> ServiceArguments {
        match self.http == DEFAULT_SERVICE {
            true => ServiceArguments { http: url, ..self },
            false => self,
        }
    }

    /// Makes a client of the named service. It sends requests to no other, as no other knows what
    /// runs there.
    pub async fn client(&self) -> anyhow::Result<StoreClient> {
        let authorities = self.http_ca_cert_path.as_ref().map(std::fs::read);
        let options = ClientOptions {
            base_uris: vec![self.http.clone()],
            certificate_authorities: authorities.transpose().context("--http-ca-cert-path")?,
            own_certificate: match (&self.http_cert_path, &self.http_key_path) {
                (Some(certificate), Some(key)) => Some((pem(certificate)?, pem(key)?)),
                _ => None,
            },
            authorization: self.authorization()?,
            request_timeout: ANSWER_TIMEOUT,
            connect_timeout: CONNECT_TIMEOUT,
            ..ClientOptions::default()
        };
        let client = StoreClient::of_one_service(options).await;
        client.map_err(|error| ProcessFailure::Configuration(error.to_string()).into())
    }

    /// The login as a header of HTTP Basic, or the token. Variables may give both, for services of
    /// either kind; then it is the login.
    fn authorization(&self) -> Result<Option<HeaderValue>, ProcessFailure> {
        let header = match (&self.user, &self.password_file, &self.token_file) {
            (Some(user), Some(path), _) => basic(user, path)?,
            (_, _, Some(path)) => bearer(path)?,
            _ => return Ok(None),
        };
        Ok(Some(header))
    }

    /// The login and the certificates as those of a CQL server at these addresses.
    pub fn for_cql(&self, cql: Vec<String>) -> CqlFlags {
        CqlFlags {
            cql,
            user: self.user.clone(),
            password_file: self.password_file.clone(),
            ca_cert_path: self.http_ca_cert_path.clone(),
            cert_path: self.http_cert_path.clone(),
            key_path: self.http_key_path.clone(),
        }
    }

    /// Explains an error in an operator's words.
    pub fn explain(&self, error: ClientError) -> anyhow::Error {
        match error {
            ClientError::Status { status, message }
                if status.starts_with("401")
                    && self.user.is_none()
                    && self.token_file.is_none() =>
            {
                let remedy = match message.contains("token") {
                    true => "here: --token-file",
                    false => "--user and --password-file",
                };
                anyhow::anyhow!("{message} ({remedy})")
            }
            ClientError::Status { message, .. }
            | ClientError::Overloaded { message, .. }
            | ClientError::Behind { message, .. } => anyhow::anyhow!(message),
            ClientError::Unavailable | ClientError::NoAddress => {
                let running = match self.http.starts_with("https:") {
                    true => {
                        "is it running, do the authorities of --ca sign its certificate, and does it ask for one \
                         (--cert, --key)?"
                    }
                    false => "is it running, without TLS?",
                };
                anyhow::anyhow!(
                    "no index service answers at {}: {running} name it with --http or ANNULUS_HTTP",
                    self.http
                )
            }
            ClientError::Aborted => {
                anyhow::anyhow!("the index service at {} did not answer in time", self.http)
            }
            ClientError::NotExact
            | ClientError::InvalidJson
            | ClientError::InvalidBinary
            | ClientError::Disabled => {
                anyhow::anyhow!(
                    "what answers at {} is no index service, or one of another version",
                    self.http
                )
            }
        }
    }

    /// Prints an answer: as JSON, or as the text that `show` makes.
    pub fn print<T: Serialize>(
        &self,
        answer: &T,
        show: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let text = match self.json {
            true => serde_json::to_string_pretty(answer)? + "\n",
            false => show(answer),
        };
        output::print(text)
    }
}

/// Runs a command on one thread, as there is nothing else to do.
pub fn block_on(work: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<()> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("starting the threads")?
        .block_on(work)
}
