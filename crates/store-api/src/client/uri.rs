//! The URIs of services.

use hyper::Uri;
use hyper::http::uri::{Authority, Scheme};

use crate::InvalidUri;

/// `http://host:port` or `https://host:port`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BaseUri {
    /// Whether the scheme is `https`.
    pub tls: bool,
    /// The host: a name or an address, without the brackets of IPv6.
    pub host: String,
    /// The port, which a base URI always has.
    pub port: u16,
    authority: Authority,
}

impl BaseUri {
    /// Parses a URI of the form that the contract gives in section 2.1.
    pub fn parse(text: &str) -> Result<BaseUri, InvalidUri> {
        let invalid = |reason: &str| InvalidUri {
            uri: text.to_owned(),
            reason: reason.to_owned(),
        };
        // A user would have no effect, and a password must not be in messages.
        if let Some((_, rest)) = text.rsplit_once('@') {
            return Err(InvalidUri {
                uri: format!("...@{rest}"),
                reason: "it names a user: leave out what stands before the @".to_owned(),
            });
        }
        let uri: Uri = text
            .trim()
            .parse()
            .map_err(|error| invalid(&format!("{error}")))?;
        let tls = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            _ => return Err(invalid("its scheme is neither http nor https")),
        };
        if !matches!(uri.path(), "" | "/") || uri.query().is_some() {
            return Err(invalid("it has a path"));
        }
        let authority = uri.authority().ok_or_else(|| invalid("it has no host"))?;
        let port = authority
            .port_u16()
            .ok_or_else(|| invalid("it has no port"))?;
        Ok(BaseUri {
            tls,
            host: authority.host().trim_matches(['[', ']']).to_owned(),
            port,
            authority: authority.clone(),
        })
    }

    /// The URI with this path below the base. The path begins with a slash and is escaped.
    pub fn with_path(&self, path: &str) -> Uri {
        let scheme = if self.tls {
            Scheme::HTTPS
        } else {
            Scheme::HTTP
        };
        Uri::builder()
            .scheme(scheme)
            .authority(self.authority.clone())
            .path_and_query(path)
            .build()
            .expect("a parsed authority and escaped segments make a URI")
    }
}

impl std::fmt::Display for BaseUri {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.authority)
    }
}

/// A name as a path segment: bytes that are not unreserved in RFC 3986 are percent-encoded.
pub fn segment(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base_uris_are_checked() {
        let uri = BaseUri::parse(" http://127.0.0.1:6080/ ").unwrap();
        assert_eq!(uri.to_string(), "http://127.0.0.1:6080");
        assert_eq!(
            uri.with_path("/a/b%20c").to_string(),
            "http://127.0.0.1:6080/a/b%20c"
        );
        let uri = BaseUri::parse("https://[::1]:7").unwrap();
        assert_eq!((uri.host.as_str(), uri.port, uri.tls), ("::1", 7, true));
        for uri in [
            "",
            "127.0.0.1",
            "http://h",
            "ftp://h:1",
            "http://h:1/x",
            "http://h:1?q",
        ] {
            assert!(BaseUri::parse(uri).is_err(), "{uri}");
        }
        let error = BaseUri::parse("http://user:secret@h:1").unwrap_err();
        let error = error.to_string();
        assert!(
            error.contains("@h:1") && !error.contains("secret"),
            "{error}"
        );
    }

    #[test]
    fn names_are_escaped() {
        assert_eq!(segment("My_idx-1.0"), "My_idx-1.0");
        assert_eq!(segment("a/b c%é"), "a%2Fb%20c%25%C3%A9");
    }
}
