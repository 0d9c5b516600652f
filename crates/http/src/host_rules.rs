//! Refuses requests by the host name that they use and by the origin that they come from.
//!
//! A web page may have its own host name resolved to the loopback address. Its browser then sends
//! requests to whatever listens there, as if that were the page's own server. Such requests still
//! bear the page's host name. So a listener on a loopback address answers to loopback names and to
//! configured names only. A listener elsewhere takes any name unless some are configured, as a
//! ScyllaDB node uses the name that it was configured with. Requests of pages from another origin
//! are refused everywhere.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::http::header::{HOST, ORIGIN};
use axum::http::uri::Authority;
use axum::http::{HeaderValue, Request};

use crate::refusal::RequestRefusal;

/// The host names that a listener answers to.
pub(crate) struct HostRules {
    on_loopback: bool,
    /// The configured names.
    names: ArcSwap<Vec<String>>,
}

impl HostRules {
    /// The rules of a listener that is bound to `address` and also answers to `names`.
    pub(crate) fn new(address: SocketAddr, names: &[String]) -> HostRules {
        let rules = HostRules {
            on_loopback: address.ip().to_canonical().is_loopback(),
            names: ArcSwap::default(),
        };
        rules.set_names(names);
        rules
    }

    /// Replaces the configured names.
    pub(crate) fn set_names(&self, names: &[String]) {
        self.names.store(Arc::new(names.to_vec()));
    }

    /// Checks the host names and the origin of a request.
    ///
    /// [`RequestRefusal::ForeignHost`] or [`RequestRefusal::ForeignOrigin`].
    pub(crate) fn admit<B>(&self, request: &Request<B>) -> Result<(), RequestRefusal> {
        let hosts = || {
            let named = request.headers().get_all(HOST).iter().map(text);
            named.chain(request.uri().authority().map(Authority::as_str))
        };
        // A client of HTTP/1.0 may name no host; a browser always does.
        if let Some(foreign) = hosts().find(|host| !self.answers_to(host)) {
            return Err(RequestRefusal::ForeignHost(foreign.to_owned()));
        }
        for origin in request.headers().get_all(ORIGIN) {
            let origin = text(origin);
            let is_own = hosts()
                .next()
                .is_some_and(|host| is_origin_of(origin, host));
            if !is_own {
                return Err(RequestRefusal::ForeignOrigin(origin.to_owned()));
            }
        }
        Ok(())
    }

    fn answers_to(&self, host: &str) -> bool {
        let names = self.names.load();
        if !self.on_loopback && names.is_empty() {
            return true;
        }
        let name = without_port(host);
        let name = name.strip_suffix('.').unwrap_or(name);
        is_loopback_name(name) || names.iter().any(|known| known.eq_ignore_ascii_case(name))
    }
}

/// The text of a header. A value that is not text becomes a name that no host has.
fn text(value: &HeaderValue) -> &str {
    value.to_str().unwrap_or("\u{fffd}")
}

/// `name`, `name:port`, `[::1]` or `[::1]:port` without the port.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
            // The last group of an IPv6 address without brackets is not a port.
            let is_address = name.contains(':') && !name.ends_with(']');
            if is_address { host } else { name }
        }
        _ => host,
    }
}

fn is_loopback_name(name: &str) -> bool {
    let address = name
        .strip_prefix('[')
        .and_then(|name| name.strip_suffix(']'))
        .unwrap_or(name);
    name.eq_ignore_ascii_case("localhost")
        || address
            .parse::<IpAddr>()
            .is_ok_and(|address| address.to_canonical().is_loopback())
}

/// Whether an origin, `scheme://host[:port]`, belongs to a page of this host.
fn is_origin_of(origin: &str, host: &str) -> bool {
    let Some((scheme, authority)) = origin.split_once("://") else {
        return false;
    };
    let default_port = match scheme {
        "http" => ":80",
        "https" => ":443",
        _ => return false,
    };
    let bare = |authority: &str| {
        let lower = authority.to_ascii_lowercase();
        lower
            .strip_suffix(default_port)
            .map_or(lower.clone(), str::to_owned)
    };
    bare(authority) == bare(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(address: &str, names: &[&str]) -> HostRules {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        HostRules::new(address.parse().unwrap(), &names)
    }

    fn admits(rules: &HostRules, headers: &[(&str, &str)]) -> bool {
        let mut request = Request::builder().uri("/api/v1/status");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        rules.admit(&request.body(()).unwrap()).is_ok()
    }

    #[test]
    fn on_loopback_only_loopback_and_configured_names_are_answered() {
        for address in ["127.0.0.1:6080", "[::1]:6080", "127.0.0.9:1"] {
            let rules = rules(address, &["Vectors.Example"]);
            for host in [
                "localhost",
                "LOCALHOST:6080",
                "localhost.",
                "127.0.0.1:6080",
                "127.8.9.10",
                "[::1]",
                "[::1]:6080",
                "[::ffff:127.0.0.1]:80",
                "vectors.example:6080",
            ] {
                assert!(admits(&rules, &[("host", host)]), "{host}");
            }
            for host in [
                "evil.example:6080",
                "localhost.evil.example",
                "127.0.0.1.evil.example",
                "127.0.0.1:x",
                "10.0.0.1",
                "",
            ] {
                assert!(!admits(&rules, &[("host", host)]), "{host}");
            }
            assert!(admits(&rules, &[]), "HTTP/1.0");
            let both = [("host", "localhost"), ("host", "evil.example")];
            assert!(!admits(&rules, &both));
        }
    }

    #[test]
    fn elsewhere_any_name_is_taken_unless_some_are_configured() {
        let open = rules("10.0.0.1:6080", &[]);
        assert!(admits(&open, &[("host", "what.scylladb.was.told")]));
        let named = rules("0.0.0.0:6080", &["vs.internal"]);
        assert!(admits(&named, &[("host", "vs.internal:6080")]));
        assert!(!admits(&named, &[("host", "evil.example")]));
        named.set_names(&[]);
        assert!(admits(&named, &[("host", "evil.example")]));
    }

    #[test]
    fn an_absolute_uri_is_a_name_too() {
        let rules = rules("127.0.0.1:6080", &[]);
        let asked = |uri: &str| {
            let request = Request::builder().uri(uri).header("host", "localhost");
            rules.admit(&request.body(()).unwrap()).is_ok()
        };
        assert!(asked("http://localhost:6080/metrics"));
        assert!(!asked("http://evil.example/metrics"));
    }

    #[test]
    fn a_foreign_origin_is_refused_everywhere() {
        for address in ["127.0.0.1:6080", "10.0.0.1:6080"] {
            let rules = rules(address, &[]);
            let from =
                |origin: &str, host: &str| admits(&rules, &[("host", host), ("origin", origin)]);
            assert!(from("http://localhost:6080", "localhost:6080"));
            assert!(from("http://LOCALHOST", "localhost:80"));
            assert!(from("https://localhost:443", "localhost"));
            for foreign in [
                "http://localhost:8000",
                "http://localhost",
                "http://evil.example",
                "null",
                "",
                "chrome-extension://localhost:6080",
            ] {
                assert!(!from(foreign, "localhost:6080"), "{foreign}");
            }
            assert!(!admits(&rules, &[("origin", "http://localhost")]));
        }
    }
}
