//! The identity that a client's certificate proves.

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// The longest identity, in bytes. A certificate with a longer one proves none.
pub const IDENTITY_BYTES_MAX: usize = 256;

/// The identity of a verified certificate: the common name (CN) of its subject. If it has no common
/// name, it is the first URI, e-mail address or DNS name among the subject's alternative names.
///
/// `None` if there is no name, if the subject has several common names, or if the name is empty,
/// too long or has control characters.
pub fn identity(certificate: &CertificateDer<'_>) -> Option<String> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    let mut common = certificate.subject().iter_common_name();
    let name = match (common.next(), common.next()) {
        (Some(only), None) => only.as_str().ok()?.to_owned(),
        (Some(_), Some(_)) => return None,
        (None, _) => alternative(&certificate)?,
    };
    is_identity(&name).then_some(name)
}

/// Whether a certificate can prove this identity: it is not empty, has at most
/// [`IDENTITY_BYTES_MAX`] bytes, and no control characters.
pub fn is_identity(name: &str) -> bool {
    let lengths = 1..=IDENTITY_BYTES_MAX;
    lengths.contains(&name.len()) && !name.chars().any(char::is_control)
}

/// The second since the epoch at which a certificate ends. `None` if it can't be read.
pub fn ends_at(certificate: &CertificateDer<'_>) -> Option<i64> {
    let (_, certificate) = X509Certificate::from_der(certificate).ok()?;
    Some(certificate.validity().not_after.timestamp())
}

fn alternative(certificate: &X509Certificate<'_>) -> Option<String> {
    let names = certificate.subject_alternative_name().ok()??;
    let mut names = names.value.general_names.iter();
    names.find_map(|name| match name {
        GeneralName::URI(name) | GeneralName::RFC822Name(name) | GeneralName::DNSName(name) => {
            Some((*name).to_owned())
        }
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair, SanType};

    use super::*;

    fn identity_of(common: &[&str], alternative: Vec<SanType>) -> Option<String> {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        for (number, name) in common.iter().enumerate() {
            let kind = match number {
                0 => DnType::CommonName,
                // Another name for the same attribute.
                _ => DnType::CustomDnType(vec![2, 5, 4, 3]),
            };
            params.distinguished_name.push(kind, *name);
        }
        params.subject_alt_names = alternative;
        let certificate = params.self_signed(&KeyPair::generate().unwrap()).unwrap();
        identity(certificate.der())
    }

    #[test]
    fn it_is_the_common_name_or_the_first_alternative_name() {
        let uri = || vec![SanType::URI("spiffe://shop/app".try_into().unwrap())];
        assert_eq!(identity_of(&["app"], uri()).as_deref(), Some("app"));
        let alternative = identity_of(&[], uri());
        assert_eq!(alternative.as_deref(), Some("spiffe://shop/app"));
        let host = vec![SanType::DnsName("app.example".try_into().unwrap())];
        assert_eq!(identity_of(&[], host).as_deref(), Some("app.example"));
    }

    #[test]
    fn a_name_that_says_nothing_or_two_things_is_none() {
        assert_eq!(identity_of(&[], vec![]), None);
        assert_eq!(identity_of(&["app", "root"], vec![]), None);
        assert_eq!(identity_of(&["app\0root"], vec![]), None);
        assert_eq!(identity_of(&[&"a".repeat(257)], vec![]), None);
        assert_eq!(identity(&CertificateDer::from(vec![0x30, 0x82])), None);
    }
}
