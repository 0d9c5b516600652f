//! The way to a CQL server: its address, login and certificates, as flags, and a session made of
//! them.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use credentials::files::{password, pem};
use net::tls::{self, Pem};
use scylla::client::execution_profile::ExecutionProfile;
use scylla::client::session::{Session, TlsContext};
use scylla::client::session_builder::SessionBuilder;
use scylla::statement::Consistency;

use crate::ToolError;

/// The longest time that one connection may take to open.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// The longest time that a session may take to open. The driver sets no limit to a TLS handshake.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);

/// The longest wait for a server of this machine that has just been started and does not listen
/// yet.
const START_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two attempts to reach such a server.
const START_POLL: Duration = Duration::from_millis(50);

/// The longest time that an answer may take. Servers give up long before; Ctrl-C ends a statement.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(600);

/// How to reach a CQL server. Each program takes these flags.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Connection")]
pub struct CqlFlags {
    /// Address of the CQL server; several with commas between, of one cluster
    #[arg(
        long,
        env = "ANNULUS_CQL",
        value_name = "HOST:PORT",
        value_delimiter = ',',
        default_value = "127.0.0.1:9042"
    )]
    pub cql: Vec<String>,

    /// Role to log in as, for a server with --login
    #[arg(
        short,
        long,
        env = "ANNULUS_CQL_USER",
        value_name = "ROLE",
        requires = "password_file"
    )]
    pub user: Option<String>,

    /// File with the password of that role
    #[arg(
        long,
        env = "ANNULUS_CQL_PASSWORD_FILE",
        value_name = "FILE",
        requires = "user"
    )]
    pub password_file: Option<PathBuf>,

    /// Authorities that sign the server's certificate, PEM (ca.pem of `annulus certificate`); the
    /// connection is then under TLS
    #[arg(
        long = "ca",
        visible_alias = "cacert",
        env = "ANNULUS_CQL_CA_CERT_PATH",
        value_name = "FILE"
    )]
    pub ca_cert_path: Option<PathBuf>,

    /// Certificate that proves to the server who the client is, PEM, if the server requires one
    #[arg(
        long = "cert",
        env = "ANNULUS_CQL_CERT_PATH",
        value_name = "FILE",
        requires_all = ["key_path", "ca_cert_path"]
    )]
    pub cert_path: Option<PathBuf>,

    /// Key of that certificate, PEM
    #[arg(
        long = "cert-key",
        visible_alias = "key",
        env = "ANNULUS_CQL_KEY_PATH",
        value_name = "FILE",
        requires = "cert_path"
    )]
    pub key_path: Option<PathBuf>,
}

impl CqlFlags {
    /// Opens a session. Statements are executed at LOCAL_QUORUM, unless they say otherwise.
    ///
    /// # Errors
    /// If a file can't be used, or no server of the flags can be reached, or it refuses the login.
    pub async fn connect(&self) -> Result<Session, ToolError> {
        self.wait_for_start().await;
        let profile = ExecutionProfile::builder()
            .consistency(Consistency::LocalQuorum)
            .request_timeout(Some(ANSWER_TIMEOUT))
            .build();
        let mut builder = SessionBuilder::new()
            .known_nodes(&self.cql)
            .connection_timeout(CONNECT_TIMEOUT)
            .tcp_nodelay(true)
            .schema_agreement_timeout(Duration::from_secs(60))
            .tls_context(self.tls()?)
            .default_execution_profile_handle(profile.into_handle());
        if let (Some(user), Some(path)) = (&self.user, &self.password_file) {
            let password = password(path)?;
            builder = builder.user(user, password.expose());
        }
        match tokio::time::timeout(OPEN_TIMEOUT, builder.build()).await {
            Ok(Ok(session)) => Ok(session),
            Ok(Err(error)) => Err(self.explain(&error.to_string())),
            Err(_) => Err(self.explain(&format!("no session was open after {OPEN_TIMEOUT:?}"))),
        }
    }

    /// Waits for a server of this machine that is starting: the command before this one in a script
    /// may have been `annulus serve &`. The driver itself reports whatever it meets afterwards.
    async fn wait_for_start(&self) {
        let [address] = self.cql.as_slice() else {
            return;
        };
        let until = tokio::time::Instant::now() + START_TIMEOUT;
        while let Ok(mut found) = tokio::net::lookup_host(address).await
            && found.all(|one| one.ip().is_loopback())
            && let Err(error) = tokio::net::TcpStream::connect(address).await
            && error.kind() == io::ErrorKind::ConnectionRefused
            && tokio::time::Instant::now() < until
        {
            tokio::time::sleep(START_POLL).await;
        }
    }

    /// The addresses as one text, for messages.
    pub fn addresses(&self) -> String {
        self.cql.join(",")
    }

    /// The flags as another program of this crate takes them.
    pub fn arguments(&self) -> Vec<OsString> {
        let mut arguments = vec![OsString::from("--cql"), self.addresses().into()];
        if let Some(user) = &self.user {
            arguments.extend(["--user".into(), user.into()]);
        }
        for (flag, path) in [
            ("--password-file", &self.password_file),
            ("--ca", &self.ca_cert_path),
            ("--cert", &self.cert_path),
            ("--cert-key", &self.key_path),
        ] {
            if let Some(path) = path {
                arguments.extend([flag.into(), path.into()]);
            }
        }
        arguments
    }

    fn tls(&self) -> Result<Option<TlsContext>, ToolError> {
        let Some(authorities) = &self.ca_cert_path else {
            return Ok(None);
        };
        let authorities = pem(authorities)?;
        let own: Option<(Pem, Pem)> = match (&self.cert_path, &self.key_path) {
            (Some(certificate), Some(key)) => Some((pem(certificate)?, pem(key)?)),
            _ => None,
        };
        let own = own.as_ref().map(|(certificate, key)| (certificate, key));
        let config = tls::client(&authorities, own);
        let config = config.map_err(|error| ToolError::Usage(error.to_string()))?;
        Ok(Some(TlsContext::Rustls023(config)))
    }

    /// Explains the driver's error in a user's words.
    fn explain(&self, error: &str) -> ToolError {
        let words = error.to_ascii_lowercase();
        let is_of_login = ["auth_response", "authentic", "credential", "password"];
        let is_of_login = is_of_login.iter().any(|word| words.contains(word));
        let remedy = match (is_of_login, &self.user, &self.ca_cert_path) {
            (true, None, _) => "log in with --user and --password-file",
            (true, Some(_), _) => "check --user and --password-file",
            (false, _, Some(_)) => {
                "is it running, do the authorities of --ca sign its certificate for this name, and does it need \
                 one of the client (--cert, --cert-key)? Name another server with --cql or ANNULUS_CQL"
            }
            (false, _, None) => {
                "is it running (`annulus serve`), and without TLS (else --ca)? Name another server with --cql or \
                 ANNULUS_CQL"
            }
        };
        let addresses = self.addresses();
        ToolError::Connection(format!("no CQL session at {addresses}: {error}; {remedy}"))
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        flags: CqlFlags,
    }

    fn parsed(arguments: &[&str]) -> Result<CqlFlags, clap::Error> {
        let words = std::iter::once("program").chain(arguments.iter().copied());
        Program::try_parse_from(words).map(|program| program.flags)
    }

    #[test]
    fn halves_of_pairs_are_refused() {
        for arguments in [
            &["--user", "ada"][..],
            &["--password-file", "/p"],
            &["--cert", "/c", "--ca", "/a"],
            &["--key", "/k"],
            &["--cert", "/c", "--key", "/k"],
        ] {
            assert!(parsed(arguments).is_err(), "{arguments:?}");
        }
        let flags = parsed(&["--cql", "a:1,b:2", "-u", "ada", "--password-file", "/p"]).unwrap();
        assert_eq!(flags.cql, ["a:1", "b:2"]);
        assert_eq!(flags.addresses(), "a:1,b:2");
        let again = flags.arguments();
        assert_eq!(
            again,
            ["--cql", "a:1,b:2", "--user", "ada", "--password-file", "/p"]
        );
    }

    #[tokio::test]
    async fn a_missing_file_is_named_and_is_the_users_mistake() {
        let flags = parsed(&["--ca", "/nowhere/ca.pem"]).unwrap();
        let error = flags.connect().await.err().unwrap();
        assert!(error.to_string().contains("/nowhere/ca.pem"), "{error}");
        assert_eq!(crate::exit_code(&error), 2);
    }

    #[tokio::test]
    async fn a_server_that_starts_a_moment_later_is_reached() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let flags = parsed(&["--cql", &address.to_string()]).unwrap();
        let starts = async {
            tokio::time::sleep(3 * START_POLL).await;
            std::net::TcpListener::bind(address).unwrap()
        };
        let waits = tokio::time::timeout(2 * START_TIMEOUT, flags.wait_for_start());
        let (listener, waited) = tokio::join!(starts, waits);
        waited.expect("it ends once there is a listener");
        assert!(listener.accept().is_ok(), "the listener was reached");
    }

    #[test]
    fn errors_of_logins_lead_to_the_login() {
        let flags = parsed(&[]).unwrap();
        let error = flags.explain("Authentication is required");
        assert!(error.to_string().contains("--password-file"), "{error}");
        let error = flags.explain("Connection refused");
        assert!(error.to_string().contains("annulus serve"), "{error}");
    }
}
