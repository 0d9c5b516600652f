//! TLS configurations for servers and clients, made of PEM texts for rustls.

#[cfg(any(test, feature = "testing"))]
pub mod authority;
mod identity;
mod pem;
mod renewable;

use std::sync::Arc;

use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, RootCertStore, ServerConfig};

pub use identity::{IDENTITY_BYTES_MAX, ends_at, identity, is_identity};
pub use pem::Pem;
pub use renewable::RenewableClient;

/// The reason why certificates or a key can't be used, with the source of their text.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{origin}: {problem}")]
pub struct CertificateError {
    /// The source of the PEM text.
    origin: String,
    /// The fault in the text.
    problem: String,
}

/// The certificate and key of a listener, and the clients that it lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TlsOptions {
    /// The certificate of the listener, with the certificates between it and the authority.
    pub certificates: Pem,
    /// The private key of the certificate.
    pub key: Pem,
    /// The clients that are let in.
    pub clients: TlsClients,
}

/// The clients that a listener with a certificate lets in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TlsClients {
    /// All clients.
    Anyone,
    /// The clients with a certificate that one of these authorities has signed.
    SignedBy(Pem),
}

/// The checked certificate and key of a listener.
#[derive(Clone, Debug)]
pub struct ServerTls {
    /// The options, as configured.
    pub options: TlsOptions,
    /// The rustls configuration made of the options.
    pub config: Arc<ServerConfig>,
}

impl PartialEq for ServerTls {
    /// Compares the options, as the configuration follows from them.
    fn eq(&self, other: &ServerTls) -> bool {
        self.options == other.options
    }
}

impl ServerTls {
    /// Makes the configuration of a listener, as [`server`] does.
    ///
    /// # Errors
    /// If the certificate, its key or the authorities can't be used.
    pub fn new(options: TlsOptions, protocols: &[&[u8]]) -> Result<ServerTls, CertificateError> {
        Ok(ServerTls {
            config: server(&options, protocols)?,
            options,
        })
    }
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(aws_lc_rs::default_provider())
}

/// Makes the configuration of a server. `protocols` are those that clients may request (ALPN); if
/// there are none, the server takes whatever clients speak.
///
/// Where clients have to show certificates, sessions are not resumed: a resumed handshake shows no
/// certificate, so one that has ended would let its client in for as long as it comes back.
///
/// # Errors
/// If the certificate, its key or the authorities can't be used.
pub fn server(
    options: &TlsOptions,
    protocols: &[&[u8]],
) -> Result<Arc<ServerConfig>, CertificateError> {
    let certificates = certificates(&options.certificates)?;
    let key = key(&options.key)?;
    let builder = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(&options.certificates, error))?;
    let builder = match &options.clients {
        TlsClients::Anyone => builder.with_no_client_auth(),
        TlsClients::SignedBy(authorities) => {
            let roots = Arc::new(roots(authorities)?);
            let verifier = WebPkiClientVerifier::builder_with_provider(roots, provider())
                .build()
                .map_err(|error| wrong(authorities, error))?;
            builder.with_client_cert_verifier(verifier)
        }
    };
    let mut config = builder
        .with_single_cert(certificates, key)
        .map_err(|error| wrong(&options.certificates, error))?;
    config.alpn_protocols = protocols.iter().map(|name| name.to_vec()).collect();
    if matches!(options.clients, TlsClients::SignedBy(_)) {
        // The library makes tickets that hold sessions only if a ticketer is set, which is not.
        config.session_storage = Arc::new(NoServerSessionStorage {});
        config.send_tls13_tickets = 0;
    }
    Ok(Arc::new(config))
}

/// Makes the configuration of a client that trusts only these authorities. `own` is a certificate
/// with its key, for servers that request one.
///
/// # Errors
/// If the authorities, the certificate or its key can't be used.
pub fn client(
    authorities: &Pem,
    own: Option<(&Pem, &Pem)>,
) -> Result<Arc<ClientConfig>, CertificateError> {
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(|error| wrong(authorities, error))?
        .with_root_certificates(roots(authorities)?);
    let config = match own {
        None => builder.with_no_client_auth(),
        Some((own, own_key)) => builder
            .with_client_auth_cert(certificates(own)?, key(own_key)?)
            .map_err(|error| wrong(own, error))?,
    };
    Ok(Arc::new(config))
}

fn key(pem: &Pem) -> Result<PrivateKeyDer<'static>, CertificateError> {
    PrivateKeyDer::from_pem_slice(&pem.bytes)
        .map_err(|error| wrong(pem, format!("no private key in the PEM format: {error}")))
}

fn certificates(pem: &Pem) -> Result<Vec<CertificateDer<'static>>, CertificateError> {
    let certificates = CertificateDer::pem_slice_iter(&pem.bytes)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|error| wrong(pem, error))?;
    if certificates.is_empty() {
        return Err(wrong(pem, "no certificate in the PEM format"));
    }
    Ok(certificates)
}

/// The second since the epoch at which the first of the certificates of a text ends. `None` if the
/// text has no certificate that can be read.
pub fn first_end(pem: &Pem) -> Option<i64> {
    let certificates = certificates(pem).ok()?;
    certificates.iter().filter_map(ends_at).min()
}

fn roots(pem: &Pem) -> Result<RootCertStore, CertificateError> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(pem)? {
        roots.add(certificate).map_err(|error| wrong(pem, error))?;
    }
    Ok(roots)
}

fn wrong(pem: &Pem, problem: impl ToString) -> CertificateError {
    CertificateError {
        origin: pem.origin.clone(),
        problem: problem.to_string(),
    }
}

#[cfg(test)]
mod tests;
