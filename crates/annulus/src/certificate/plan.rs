//! The files that a run makes, decided before any is written.

use std::fmt;
use std::fmt::Write as _;
use std::path::Path;

use rustls::pki_types::ServerName;

use super::CertificateArguments;
use crate::exit::ProcessFailure;

/// The names of a server for which none are given.
const DEFAULT_NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// The stem of the files of a server's certificate.
const SERVER: &str = "server";

/// The longest name of a client, in bytes, as in the subject of a certificate.
const CLIENT_BYTES_MAX: usize = 64;

/// The authority and the certificates that a run makes.
#[derive(Debug, PartialEq)]
pub struct IssuancePlan {
    /// Whether an authority is made. Otherwise the directory has one.
    pub makes_authority: bool,
    /// The certificates that the authority signs.
    pub signed: Vec<LeafCertificate>,
    /// The name by which a client of the server reaches it, for examples.
    host: String,
}

/// A certificate that the authority signs.
#[derive(Debug, PartialEq)]
pub enum LeafCertificate {
    /// The certificate of a server with these names and addresses.
    Server { names: Vec<String> },
    /// The certificate of a client.
    Client { name: String },
}

impl fmt::Display for LeafCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeafCertificate::Server { names } => write!(f, "the server {}", names.join(", ")),
            LeafCertificate::Client { name } => write!(f, "the client {name}"),
        }
    }
}

impl LeafCertificate {
    /// The name of its file with this ending.
    pub fn file(&self, ending: &str) -> String {
        let stem = match self {
            LeafCertificate::Server { .. } => SERVER,
            LeafCertificate::Client { name } => name,
        };
        format!("{stem}.{ending}")
    }
}

impl IssuancePlan {
    /// Decides what is made, and checks that no file is lost by it.
    ///
    /// # Errors
    /// If a file would be replaced without --force, the authority is there by half, or a name can't
    /// be that of a client.
    pub fn of(arguments: &CertificateArguments) -> Result<IssuancePlan, ProcessFailure> {
        let directory = &arguments.out;
        let is_there = |name: &str| directory.join(name).symlink_metadata().is_ok();
        let makes_authority = match (is_there("ca.pem"), is_there("ca.key")) {
            (false, false) => true,
            (true, true) => false,
            (true, false) => return Err(half(directory, "ca.pem", "ca.key")),
            (false, true) => return Err(half(directory, "ca.key", "ca.pem")),
        };
        let has_server = is_there("server.pem") || is_there("server.key");
        arguments
            .names
            .iter()
            .try_for_each(|name| check_name(name))?;
        if has_server && arguments.names.is_empty() && arguments.clients.is_empty() {
            return Err(ProcessFailure::Configuration(format!(
                "{} has the certificate of a server already: to make it anew give its names (--name) and --force, \
                 or name clients (--client)",
                directory.display()
            )));
        }
        let mut signed = Vec::new();
        if !arguments.names.is_empty() || !has_server {
            let names = match &arguments.names[..] {
                [] => DEFAULT_NAMES.map(str::to_owned).to_vec(),
                names => names.to_vec(),
            };
            signed.push(LeafCertificate::Server { names });
        }
        for name in &arguments.clients {
            check_client(name)?;
            let name = name.clone();
            let client = LeafCertificate::Client { name };
            if !signed.contains(&client) {
                signed.push(client);
            }
        }
        let files = signed
            .iter()
            .flat_map(|signed| ["pem", "key"].map(|ending| signed.file(ending)));
        let lost: Vec<String> = files.filter(|file| is_there(file)).collect();
        if !lost.is_empty() && !arguments.force {
            return Err(ProcessFailure::Configuration(format!(
                "{} is there already in {}: nothing was changed; add --force to replace it, or take another \
                 directory",
                lost.join(", "),
                directory.display()
            )));
        }
        let host = arguments.names.first();
        Ok(IssuancePlan {
            makes_authority,
            signed,
            host: host.map_or("localhost", String::as_str).to_owned(),
        })
    }

    /// The commands that use the files, as text.
    pub fn how_to_use(&self, directory: &Path) -> String {
        let path = |file: &str| directory.join(file).display().to_string();
        let (authority, host) = (path("ca.pem"), &self.host);
        let client = self.signed.iter().find_map(|signed| match signed {
            LeafCertificate::Client { .. } => {
                Some(["pem", "key", "cqlshrc"].map(|ending| path(&signed.file(ending))))
            }
            LeafCertificate::Server { .. } => None,
        });
        let mut text = "\nTo use them:\n".to_owned();
        let serve = format!(
            "  annulus serve --tls-cert-path {} --tls-key-path {}",
            path("server.pem"),
            path("server.key")
        );
        let (asking, cqlsh, for_curl) = match &client {
            None => (
                String::new(),
                format!("SSL_CERTFILE={authority} cqlsh --ssl"),
                String::new(),
            ),
            Some([certificate, key, cqlshrc]) => (
                format!(" --tls-client-ca-cert-path {authority}"),
                format!("cqlsh --ssl --cqlshrc {cqlshrc}"),
                format!(" --cert {certificate} --key {key}"),
            ),
        };
        let bracketed = match host.contains(':') {
            true => format!("[{host}]"),
            false => host.clone(),
        };
        // Writing to a text never fails.
        let _ = write!(
            text,
            "{serve}{asking}\n  \
             {cqlsh} {host} 9042\n  \
             curl --cacert {authority}{for_curl} https://{bracketed}:6080/api/v1/status\n  \
             annulus status --http https://{bracketed}:6080 --ca {authority}{for_curl}\n"
        );
        text
    }
}

fn half(directory: &Path, there: &str, missing: &str) -> ProcessFailure {
    ProcessFailure::Configuration(format!(
        "{} has {there}, but no {missing}: put it back to use that authority, or take another directory to make a \
         new one",
        directory.display()
    ))
}

/// Refuses a name by which no client could reach a server. A whole label may be a `*`.
fn check_name(name: &str) -> Result<(), ProcessFailure> {
    let host = name.strip_prefix("*.").unwrap_or(name);
    match ServerName::try_from(host) {
        Ok(_) => Ok(()),
        Err(_) => Err(ProcessFailure::Configuration(format!(
            "--name '{name}' is neither a host name nor an IP address, such as db.example or 10.0.0.5"
        ))),
    }
}

/// Refuses a name that would be no file's, or one of the other files'.
fn check_client(name: &str) -> Result<(), ProcessFailure> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-.@".contains(c);
    let problem = if name.is_empty() || name.len() > CLIENT_BYTES_MAX {
        format!("has to have 1 to {CLIENT_BYTES_MAX} characters")
    } else if !name.chars().all(is_plain) || name.starts_with(['.', '-']) {
        "is the name of its files, too: letters, digits, '_', '-', '.' and '@' make one".to_owned()
    } else if ["ca", SERVER]
        .iter()
        .any(|taken| name.eq_ignore_ascii_case(taken))
    {
        "is the name of other files in the directory".to_owned()
    } else {
        return Ok(());
    };
    Err(ProcessFailure::Configuration(format!(
        "--client '{name}' {problem}"
    )))
}
