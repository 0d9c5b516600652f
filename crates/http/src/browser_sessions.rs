//! Sessions of browsers: what a browser logged in with, for as long as it uses it.
//!
//! A page can't keep a password safely, and a browser's own dialog for HTTP Basic has no logout. So
//! a browser that has logged in gets a cookie with a random id, and the server remembers the value
//! of `Authorization` that belongs to it. Requests with the cookie, and with the header of the
//! guard ([`crate::is_guarded`]), get that value back before anything is checked. So each of them
//! is checked by the present logins and rights. A session whose login is refused ends.
//!
//! Digests of the ids are stored, so that the time of a look-up reveals none of them. All sessions
//! are in memory: a restart ends them.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand;
use axum::http::header::{AUTHORIZATION, COOKIE};
use axum::http::{HeaderMap, HeaderValue};

/// The most sessions of a listener. One more ends the one that was unused for the longest.
const SESSIONS_MAX: usize = 1000;

/// The time after which a session that is not used ends.
const IDLE_MAX: Duration = Duration::from_hours(12);

/// The most bytes of a value of `Authorization` that is remembered.
pub(crate) const AUTHORIZATION_BYTES_MAX: usize = 4096;

/// The random bytes of an id.
const ID_BYTES: usize = 32;

/// The name by which the server knows a session: the digest of its id.
pub(crate) type SessionKey = [u8; 32];

/// The sessions of the browsers of one listener.
pub(crate) struct BrowserSessions {
    port: u16,
    /// The name of the cookie. Browsers send cookies to all ports of a host, so it has the port.
    cookie: String,
    /// Whether browsers may send the cookie under TLS only.
    is_secure: AtomicBool,
    open: Mutex<HashMap<SessionKey, BrowserSession>>,
}

/// A session.
struct BrowserSession {
    authorization: HeaderValue,
    last_used: Instant,
}

/// The session that a request belongs to, one of the request's extensions.
#[derive(Clone, Copy)]
pub(crate) struct AdoptedSession(pub(crate) SessionKey);

impl BrowserSessions {
    /// The sessions of a listener on this port; none so far.
    pub(crate) fn new(port: u16) -> BrowserSessions {
        BrowserSessions {
            port,
            cookie: format!("annulus_session_{port}"),
            is_secure: AtomicBool::new(false),
            open: Mutex::default(),
        }
    }

    /// The port of the listener.
    pub(crate) fn port(&self) -> u16 {
        self.port
    }

    /// Has browsers send cookies that they get from now on under TLS only, or in clear, too.
    pub(crate) fn set_secure(&self, is_secure: bool) {
        self.is_secure.store(is_secure, Ordering::Relaxed);
    }

    /// Gives a request without a login the one of its session, and returns which that is. The
    /// caller has seen that the request has the header of the guard.
    pub(crate) fn adopt(&self, headers: &mut HeaderMap, now: Instant) -> Option<SessionKey> {
        if headers.contains_key(AUTHORIZATION) {
            return None;
        }
        let mut named = self.keys_of(headers).into_iter();
        let (key, authorization) =
            named.find_map(|key| Some((key, self.authorization(&key, now)?)))?;
        headers.insert(AUTHORIZATION, authorization);
        Some(key)
    }

    /// The sessions that the cookies of a request name. Any of them may have ended. All servers of
    /// a host share its cookies: those of others may have any bytes, and one of them may have set
    /// another cookie of this name, for some paths.
    pub(crate) fn keys_of(&self, headers: &HeaderMap) -> Vec<SessionKey> {
        let lines = headers.get_all(COOKIE).iter();
        let cookies = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b';'));
        let ids = cookies.filter_map(|cookie| {
            let value = cookie.trim_ascii().strip_prefix(self.cookie.as_bytes())?;
            value.strip_prefix(b"=")
        });
        ids.filter(|id| id.len() == 2 * ID_BYTES).map(key).collect()
    }

    /// The login of a session, which counts as used now.
    fn authorization(&self, key: &SessionKey, now: Instant) -> Option<HeaderValue> {
        let mut open = self.lock();
        let session = open.get_mut(key)?;
        if now.duration_since(session.last_used) > IDLE_MAX {
            open.remove(key);
            return None;
        }
        session.last_used = now;
        Some(session.authorization.clone())
    }

    /// Begins a session with this login. Returns its id; `None` if the system has no random bytes.
    pub(crate) fn begin(&self, mut authorization: HeaderValue, now: Instant) -> Option<String> {
        let mut bytes = [0; ID_BYTES];
        rand::fill(&mut bytes).ok()?;
        let id = bytes.iter().fold(String::new(), |mut id, byte| {
            let _ = write!(id, "{byte:02x}");
            id
        });
        authorization.set_sensitive(true);
        let mut open = self.lock();
        open.retain(|_, session| now.duration_since(session.last_used) <= IDLE_MAX);
        if open.len() >= SESSIONS_MAX {
            let oldest = open.iter().min_by_key(|(_, session)| session.last_used);
            if let Some(oldest) = oldest.map(|(key, _)| *key) {
                open.remove(&oldest);
            }
        }
        let session = BrowserSession {
            authorization,
            last_used: now,
        };
        open.insert(key(id.as_bytes()), session);
        Some(id)
    }

    /// Ends a session.
    pub(crate) fn end(&self, key: &SessionKey) {
        self.lock().remove(key);
    }

    /// The cookie of a session, for its browser.
    pub(crate) fn cookie(&self, id: &str) -> Option<HeaderValue> {
        let secure = match self.is_secure.load(Ordering::Relaxed) {
            true => "; Secure",
            false => "",
        };
        let cookie = format!(
            "{}={id}; HttpOnly; SameSite=Strict; Path=/{secure}",
            self.cookie
        );
        HeaderValue::try_from(cookie).ok()
    }

    /// Has a browser drop its cookie.
    pub(crate) fn no_cookie(&self) -> Option<HeaderValue> {
        let cookie = format!(
            "{}=; HttpOnly; SameSite=Strict; Path=/; Max-Age=0",
            self.cookie
        );
        HeaderValue::try_from(cookie).ok()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionKey, BrowserSession>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(id: &[u8]) -> SessionKey {
    let mut key = SessionKey::default();
    key.copy_from_slice(digest(&SHA256, id).as_ref());
    key
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOGIN: &str = "Basic YWRhOmxvdmVsYWNl";

    fn with_cookie(sessions: &BrowserSessions, id: &str) -> HeaderMap {
        let cookie = format!("theme=dark; {}={id}", sessions.cookie);
        let cookie = HeaderValue::try_from(cookie).unwrap();
        [(COOKIE, cookie)].into_iter().collect()
    }

    /// Whether a request with the cookie of a session gets its login.
    fn is_open(sessions: &BrowserSessions, id: &str, now: Instant) -> bool {
        let mut headers = with_cookie(sessions, id);
        let key = sessions.adopt(&mut headers, now);
        let login = headers.get(AUTHORIZATION).map(HeaderValue::as_bytes);
        assert_eq!(login, key.map(|_| LOGIN.as_bytes()));
        key.is_some()
    }

    fn begin(sessions: &BrowserSessions, now: Instant) -> String {
        let login = HeaderValue::from_static(LOGIN);
        sessions.begin(login, now).unwrap()
    }

    #[test]
    fn the_cookie_of_a_session_is_its_login_until_it_ends() {
        let (sessions, now) = (BrowserSessions::new(6080), Instant::now());
        let id = begin(&sessions, now);
        assert_eq!(id.len(), 64);
        assert!(is_open(&sessions, &id, now));
        let zeros = "0".repeat(id.len());
        for other in ["", "x", &id[1..], zeros.as_str()] {
            assert!(!is_open(&sessions, other, now), "{other}");
        }
        let elsewhere = BrowserSessions::new(6081);
        let mut headers = with_cookie(&elsewhere, &id);
        assert!(sessions.adopt(&mut headers, now).is_none());
        let own = HeaderValue::from_static("Basic b3RoZXI6");
        let mut headers = with_cookie(&sessions, &id);
        headers.insert(AUTHORIZATION, own.clone());
        assert!(sessions.adopt(&mut headers, now).is_none());
        assert_eq!(headers[AUTHORIZATION], own);
        sessions.end(&key(id.as_bytes()));
        assert!(!is_open(&sessions, &id, now));
    }

    #[test]
    fn a_session_is_found_among_the_cookies_of_other_servers() {
        let (sessions, now) = (BrowserSessions::new(6080), Instant::now());
        let id = begin(&sessions, now);
        let zeros = "0".repeat(id.len());
        for other in [
            "user=Zo\u{eb}".to_owned(),
            format!("annulus_session_6080={zeros}"),
            format!("annulus_session_60801={zeros}"),
            "annulus_session_6080".to_owned(),
            ";".to_owned(),
        ] {
            let cookies = format!("{other}; annulus_session_6080={id}");
            let cookies = HeaderValue::from_bytes(cookies.as_bytes()).unwrap();
            let mut headers: HeaderMap = [(COOKIE, cookies)].into_iter().collect();
            let key = sessions.adopt(&mut headers, now);
            assert_eq!(key, Some(super::key(id.as_bytes())), "{other}");
            assert_eq!(headers[AUTHORIZATION], LOGIN, "{other}");
        }
    }

    #[test]
    fn a_session_ends_when_it_is_not_used() {
        let (sessions, began) = (BrowserSessions::new(1), Instant::now());
        let id = begin(&sessions, began);
        let later = began + IDLE_MAX;
        assert!(is_open(&sessions, &id, later));
        let later = later + IDLE_MAX;
        assert!(is_open(&sessions, &id, later));
        assert!(!is_open(
            &sessions,
            &id,
            later + IDLE_MAX + Duration::from_secs(1)
        ));
        assert!(!is_open(&sessions, &id, later));
    }

    #[test]
    fn the_session_that_is_unused_for_the_longest_makes_room() {
        let (sessions, began) = (BrowserSessions::new(1), Instant::now());
        let at = |second: usize| began + Duration::from_secs(second as u64);
        let ids: Vec<String> = (0..SESSIONS_MAX)
            .map(|second| begin(&sessions, at(second)))
            .collect();
        assert!(is_open(&sessions, &ids[0], at(SESSIONS_MAX)));
        let last = begin(&sessions, at(SESSIONS_MAX));
        assert_eq!(sessions.lock().len(), SESSIONS_MAX);
        let open = [&ids[0], &ids[1], &ids[2], &last];
        let open = open.map(|id| is_open(&sessions, id, at(SESSIONS_MAX)));
        assert_eq!(open, [true, false, true, true]);
    }

    #[test]
    fn a_cookie_is_for_this_server_alone() {
        let sessions = BrowserSessions::new(6080);
        let cookie = sessions.cookie("1f").unwrap();
        assert_eq!(
            cookie,
            "annulus_session_6080=1f; HttpOnly; SameSite=Strict; Path=/"
        );
        sessions.set_secure(true);
        let cookie = sessions.cookie("1f").unwrap();
        assert!(cookie.to_str().unwrap().ends_with("Path=/; Secure"));
        let gone = sessions.no_cookie().unwrap();
        assert!(gone.to_str().unwrap().ends_with("Max-Age=0"));
    }
}
