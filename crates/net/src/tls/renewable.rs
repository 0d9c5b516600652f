//! The client's side of TLS, with files that may change while it is in use.
//!
//! A user of the client holds on to one `ClientConfig`; a driver's session does so for good. So the
//! configuration looks up the trusted authorities and the client's own certificate at each
//! handshake.

use std::sync::Arc;

use arc_swap::ArcSwap;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ResolvesClientCert, Resumption, WebPkiServerVerifier};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::sign::CertifiedKey;
use rustls::{ClientConfig, DigitallySignedStruct, Error, SignatureScheme};

use super::{CertificateError, Pem, client, provider, roots, wrong};

/// A client that trusts only some authorities, and presents a certificate of its own to servers
/// that request one. [`RenewableClient::renew`] replaces both.
#[derive(Clone, Debug)]
pub struct RenewableClient {
    config: Arc<ClientConfig>,
    current: Arc<CurrentIdentity>,
}

impl RenewableClient {
    /// Makes a client that trusts these authorities. `own` is a certificate with its key.
    ///
    /// # Errors
    /// If the authorities, the certificate or its key can't be used.
    pub fn new(
        authorities: &Pem,
        own: Option<(&Pem, &Pem)>,
    ) -> Result<RenewableClient, CertificateError> {
        let identity = HandshakeIdentity::new(authorities, own)?;
        let current = Arc::new(CurrentIdentity(ArcSwap::from_pointee(identity)));
        let mut config = ClientConfig::builder_with_provider(provider())
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(authorities, error))?
            .dangerous()
            .with_custom_certificate_verifier(current.clone())
            .with_client_cert_resolver(current.clone());
        // A resumed session would not be checked against renewed authorities.
        config.resumption = Resumption::disabled();
        Ok(RenewableClient {
            config: Arc::new(config),
            current,
        })
    }

    /// The configuration to connect with. It follows every renewal.
    pub fn config(&self) -> Arc<ClientConfig> {
        self.config.clone()
    }

    /// Uses these authorities and this certificate for handshakes from now on.
    ///
    /// # Errors
    /// If they can't be used. Then nothing changes.
    pub fn renew(
        &self,
        authorities: &Pem,
        own: Option<(&Pem, &Pem)>,
    ) -> Result<(), CertificateError> {
        let identity = HandshakeIdentity::new(authorities, own)?;
        self.current.0.store(Arc::new(identity));
        Ok(())
    }
}

/// The trusted authorities, and the client's own certificate.
#[derive(Debug)]
struct HandshakeIdentity {
    verifier: Arc<WebPkiServerVerifier>,
    own: Arc<dyn ResolvesClientCert>,
}

impl HandshakeIdentity {
    fn new(
        authorities: &Pem,
        own: Option<(&Pem, &Pem)>,
    ) -> Result<HandshakeIdentity, CertificateError> {
        let roots = Arc::new(roots(authorities)?);
        let believed = WebPkiServerVerifier::builder_with_provider(roots, provider())
            .build()
            .map_err(|error| wrong(authorities, error))?;
        let own = client(authorities, own)?.client_auth_cert_resolver.clone();
        Ok(HandshakeIdentity {
            verifier: believed,
            own,
        })
    }
}

/// The identity that handshakes use now.
#[derive(Debug)]
struct CurrentIdentity(ArcSwap<HandshakeIdentity>);

impl ServerCertVerifier for CurrentIdentity {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        self.0.load().verifier.verify_server_cert(
            end_entity,
            intermediates,
            server_name,
            ocsp_response,
            now,
        )
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let identity = self.0.load();
        identity
            .verifier
            .verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let identity = self.0.load();
        identity
            .verifier
            .verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.load().verifier.supported_verify_schemes()
    }
}

impl ResolvesClientCert for CurrentIdentity {
    fn resolve(
        &self,
        root_hint_subjects: &[&[u8]],
        schemes: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        self.0.load().own.resolve(root_hint_subjects, schemes)
    }

    fn has_certs(&self) -> bool {
        self.0.load().own.has_certs()
    }
}
