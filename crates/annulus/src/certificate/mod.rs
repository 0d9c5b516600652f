//! `annulus certificate`: an authority of one's own, and certificates that it signs for a server
//! and its clients.
//!
//! Which files are made is decided first ([`plan`]), then they are made and written
//! ([`authority`], [`out`]).

mod authority;
mod out;
mod plan;
#[cfg(test)]
mod tests;

use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use credentials::files::pem;

use self::authority::SigningAuthority;
use self::out::{write_all, write_new};
use self::plan::{IssuancePlan, LeafCertificate};
use crate::output;

/// The end of the help.
pub const EXAMPLES: &str = "\
Examples:
  annulus certificate --out certs --name db.example --name 10.0.0.5
      an authority, and a certificate for a server that clients reach by these names
  annulus certificate --out certs --client app --client prometheus
      certificates for two clients, by the authority in certs
  annulus certificate --out certs --name db.example --name 10.0.0.5 --force
      the server's certificate again, by the authority in certs; a running server takes it up itself

  annulus serve --tls-cert-path certs/server.pem --tls-key-path certs/server.key
      only TLS from now on; add --tls-client-ca-cert-path certs/ca.pem to require certificates of clients
  SSL_CERTFILE=certs/ca.pem cqlsh --ssl localhost 9042
  curl --cacert certs/ca.pem https://localhost:6080/api/v1/status";

#[derive(Args, Debug)]
pub struct CertificateArguments {
    /// Directory for the files; created if missing
    #[arg(long, value_name = "DIR")]
    out: PathBuf,

    /// Host name or IP address by which clients reach the server; may be given several times
    /// [default: localhost, 127.0.0.1 and ::1, if the directory has no certificate of a server]
    #[arg(long = "name", value_name = "NAME")]
    names: Vec<String>,

    /// Name of a client to make a certificate for; may be given several times. The server knows the
    /// client by this name
    #[arg(long = "client", value_name = "NAME")]
    clients: Vec<String>,

    /// Days for which certificates are valid. A new authority is valid for ten years, or for longer
    /// if they are
    #[arg(long, value_name = "N", default_value_t = 365, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    days: u32,

    /// Replace certificates that are there already. The authority is never replaced: to have
    /// another, take another directory
    #[arg(long)]
    force: bool,
}

/// Runs `annulus certificate`.
pub fn run(arguments: &CertificateArguments) -> anyhow::Result<()> {
    let directory = &arguments.out;
    let plan = IssuancePlan::of(arguments)?;
    std::fs::create_dir_all(directory)
        .with_context(|| format!("creating {}", directory.display()))?;
    let authority = match plan.makes_authority {
        true => new_authority(directory, arguments.days)?,
        false => known_authority(directory)?,
    };
    ensure_lasts(&authority, arguments)?;
    for signed in &plan.signed {
        write_signed(directory, signed, &authority, arguments.days)?;
    }
    output::print(plan.how_to_use(directory))
}

/// Refuses days that outlast the authority.
fn ensure_lasts(
    authority: &SigningAuthority,
    arguments: &CertificateArguments,
) -> anyhow::Result<()> {
    let (days, left) = (arguments.days, authority.days_left());
    let certificate = arguments.out.join("ca.pem");
    let certificate = certificate.display();
    anyhow::ensure!(
        left > 0,
        "the authority {certificate} has ended: make another in another directory"
    );
    anyhow::ensure!(
        u64::from(days) <= left,
        "the authority {certificate} ends in {left} days, before a certificate for {days}: give --days {left} or less, or make another authority in another directory"
    );
    Ok(())
}

/// Makes a certificate and writes its files.
fn write_signed(
    directory: &Path,
    signed: &LeafCertificate,
    authority: &SigningAuthority,
    days: u32,
) -> anyhow::Result<()> {
    let made = match signed {
        LeafCertificate::Server { names } => authority.sign_server(names, days),
        LeafCertificate::Client { name } => authority.sign_client(name, days),
    };
    let made = made.with_context(|| format!("the certificate of {signed}"))?;
    let [certificate, key] = ["pem", "key"].map(|ending| signed.file(ending));
    let mut files = vec![
        (key.clone(), &made.key[..]),
        (certificate.clone(), &made.certificate[..]),
    ];
    let for_cqlsh = cqlshrc(directory, &certificate, &key).context("the current directory")?;
    if let LeafCertificate::Client { .. } = signed {
        files.push((signed.file("cqlshrc"), &for_cqlsh));
    }
    write_all(directory, &files)?;
    output::print(format_args!(
        "{} and {} (its key): {signed}, for {days} days\n",
        directory.join(certificate).display(),
        directory.join(key).display(),
    ))
}

/// The settings of cqlsh for a client. They name files by their whole paths, as cqlsh takes others
/// from where it is started.
fn cqlshrc(directory: &Path, certificate: &str, key: &str) -> std::io::Result<String> {
    let directory = std::path::absolute(directory)?;
    // A % begins a reference to another setting.
    let path = |name: &str| {
        directory
            .join(name)
            .display()
            .to_string()
            .replace('%', "%%")
    };
    Ok(format!(
        "[ssl]\ncertfile = {}\nusercert = {}\nuserkey = {}\n",
        path("ca.pem"),
        path(certificate),
        path(key)
    ))
}

fn new_authority(directory: &Path, days: u32) -> anyhow::Result<SigningAuthority> {
    let made = SigningAuthority::new_pair(days).context("the certificate of the authority")?;
    // The key comes first, as an authority without it could sign nothing.
    write_new(&directory.join("ca.key"), &made.key, true)?;
    write_new(&directory.join("ca.pem"), &made.certificate, false)?;
    output::print(format_args!(
        "{} and {}: a new authority; give clients the first, and keep the second to yourself\n",
        directory.join("ca.pem").display(),
        directory.join("ca.key").display()
    ))?;
    known_authority(directory)
}

/// Reads the authority that the directory has.
fn known_authority(directory: &Path) -> anyhow::Result<SigningAuthority> {
    let (certificate, key) = (directory.join("ca.pem"), directory.join("ca.key"));
    let authority = SigningAuthority::read(&pem(&certificate)?, &pem(&key)?);
    authority.with_context(|| {
        format!(
            "{} and {} are not an authority and its key",
            certificate.display(),
            key.display()
        )
    })
}
