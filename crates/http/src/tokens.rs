//! Tokens as the login of operators and of Prometheus, for services that have no users.
//!
//! A request bears a token in its header `Authorization: Bearer ...` (RFC 6750). Digests of the
//! tokens are stored and compared, so that neither a dump of the memory nor the time of a
//! comparison reveals a token.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};

use crate::access::{
    AuthorizationRefusal, Authorizer, ClientLogin, LoginKind, RequestOrigin, RequestedOperation,
};

/// The fewest characters of a token.
const CHARACTERS_MIN: usize = 16;

/// The most tokens of a file. A request is compared with all of them.
const TOKENS_MAX: usize = 1000;

/// The tokens of a file.
#[derive(Clone, PartialEq, Eq)]
pub struct TokenSet {
    digests: Vec<[u8; 32]>,
}

impl TokenSet {
    /// Reads the text of a file of tokens: a token in each line, with a name before it or without
    /// one. A name has fewer characters than a token, so that neither is taken for the other. Empty
    /// lines and those that begin with `#` are left out.
    ///
    /// # Errors
    /// If there is no token, one is too short, or a line has other words than these. The text names
    /// the line, never its content.
    pub fn parse(text: &str) -> Result<TokenSet, String> {
        let mut digests = Vec::new();
        for (number, line) in (1..).zip(text.lines()) {
            let Some(token) = token_of(line).map_err(|why| format!("line {number}: {why}"))? else {
                continue;
            };
            if digests.len() == TOKENS_MAX {
                return Err(format!("more than {TOKENS_MAX} tokens"));
            }
            digests.push(digest_of(token));
        }
        match digests.is_empty() {
            true => Err("there is no token in the file: write one of at least 16 characters, as `openssl rand -hex 32` \
                         makes it"
                .to_owned()),
            false => Ok(TokenSet { digests }),
        }
    }

    /// Whether a token is one of these. The time does not depend on which.
    fn has(&self, token: &str) -> bool {
        let digest = digest_of(token);
        let mut found = false;
        for known in &self.digests {
            found |= verify_slices_are_equal(known, &digest).is_ok();
        }
        found
    }
}

impl std::fmt::Debug for TokenSet {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TokenSet({})", self.digests.len())
    }
}

/// The first token of a file, for a client that bears one.
///
/// # Errors
/// As [`TokenSet::parse`].
pub fn first_token(text: &str) -> Result<&str, String> {
    TokenSet::parse(text)?;
    let mut tokens = text
        .lines()
        .filter_map(|line| token_of(line).ok().flatten());
    tokens.next().ok_or_else(|| "no token".to_owned())
}

fn digest_of(token: &str) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

/// The token of a line; `None` if the line is empty or a comment.
fn token_of(line: &str) -> Result<Option<&str>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let mut words = line.split_whitespace();
    let (first, second, third) = (words.next(), words.next(), words.next());
    if third.is_some() {
        return Err("write a token, or a name and a token, and nothing else");
    }
    if second.is_some_and(|second| second.starts_with('#')) {
        return Err("a comment has a line of its own, not one behind a token");
    }
    if second.is_some() && first.is_some_and(is_like_a_token) {
        return Err(
            "the first of two words is a name, and this one could be a token: write the name first, with fewer than 16 \
             characters",
        );
    }
    let Some(token) = second.or(first) else {
        return Ok(None);
    };
    if !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err("a token has letters, digits and signs of ASCII");
    }
    match token.len() < CHARACTERS_MIN {
        true => Err("a token has at least 16 characters, as one could guess a shorter one"),
        false => Ok(Some(token)),
    }
}

/// Whether a word has the characters of a token, as programs make them.
fn is_like_a_token(word: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    word.len() >= CHARACTERS_MIN && word.bytes().all(is_usual)
}

/// Lets in requests that bear a token. The tokens may change at any time.
///
/// The searches and states that a database requests need none, as ScyllaDB sends none. Without a
/// file all requests are let in at a loopback address, and only those elsewhere.
#[derive(Debug, Default)]
pub struct TokenAuthorizer {
    set: ArcSwapOption<TokenSet>,
}

impl TokenAuthorizer {
    /// An authorizer with these tokens; `None` if there is no file of them.
    pub fn new(set: Option<TokenSet>) -> TokenAuthorizer {
        TokenAuthorizer {
            set: ArcSwapOption::new(set.map(Arc::new)),
        }
    }

    /// Takes other tokens, which count from the next request on. Returns whether they differ.
    pub fn replace(&self, set: Option<TokenSet>) -> bool {
        let set = set.map(Arc::new);
        let before = self.set.swap(set.clone());
        before != set
    }

    /// Checks the header of a request to a listener.
    ///
    /// # Errors
    /// If the request has to bear a token and does not, or there is none that it could bear.
    pub fn check(
        &self,
        authorization: Option<&str>,
        listener: IpAddr,
    ) -> Result<(), AuthorizationRefusal> {
        let set = self.set.load();
        let Some(set) = &*set else {
            return match listener.to_canonical().is_loopback() {
                true => Ok(()),
                false => Err(AuthorizationRefusal::Right(
                    "beyond a loopback address this needs a token: start the service with --token-file FILE \
                     (ANNULUS_TOKEN_FILE), or have it listen at a loopback address; in a gateway with --with-store name \
                     [store] token-file"
                        .to_owned(),
                )),
            };
        };
        match authorization.and_then(bearer) {
            Some(token) if set.has(token) => Ok(()),
            Some(_) => Err(AuthorizationRefusal::Token(
                "the token is none of those in the file of --token-file".to_owned(),
            )),
            None => Err(AuthorizationRefusal::Token(
                "this needs a token of the file of --token-file: send Authorization: Bearer TOKEN"
                    .to_owned(),
            )),
        }
    }
}

/// Reads `Bearer` and the token.
fn bearer(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

impl Authorizer for TokenAuthorizer {
    fn admit<'a>(
        &'a self,
        origin: RequestOrigin<'a>,
        operation: RequestedOperation<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<(), AuthorizationRefusal>> + Send + 'a>> {
        let admitted = match operation {
            RequestedOperation::Search { .. } | RequestedOperation::SeeState => Ok(()),
            RequestedOperation::See
            | RequestedOperation::SeeSettings
            | RequestedOperation::SampleRows { .. }
            | RequestedOperation::Change { .. }
            | RequestedOperation::Operate => self.check(origin.authorization, origin.listener),
        };
        Box::pin(std::future::ready(admitted))
    }

    fn identify<'a>(
        &'a self,
        origin: RequestOrigin<'a>,
    ) -> Pin<Box<dyn Future<Output = Result<ClientLogin, AuthorizationRefusal>> + Send + 'a>> {
        let is_let_in = self.check(origin.authorization, origin.listener).is_ok();
        let login = match (is_let_in, self.set.load().is_some()) {
            (true, false) => ClientLogin::NOT_NEEDED,
            (true, true) => ClientLogin {
                is_logged_in: true,
                ..ClientLogin::missing(LoginKind::Token)
            },
            (false, _) => ClientLogin::missing(LoginKind::Token),
        };
        Box::pin(std::future::ready(Ok(login)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: &str = "0123456789abcdef";
    const OTHER: &str = "fedcba9876543210";

    fn set(text: &str) -> TokenSet {
        TokenSet::parse(text).unwrap()
    }

    fn anywhere() -> [IpAddr; 4] {
        ["127.0.0.1", "::1", "10.0.0.1", "::"].map(|text| text.parse().unwrap())
    }

    #[test]
    fn a_file_has_a_token_in_each_line_and_names_and_comments() {
        let text = format!("# ours\n\n{ONE}\r\n  prometheus\t{OTHER}  \n");
        let read = set(&text);
        assert!(read.has(ONE) && read.has(OTHER));
        for wrong in ["", "prometheus", "0123456789abcdeF", "0123456789abcdef0"] {
            assert!(!read.has(wrong), "{wrong}");
        }
        assert_eq!(first_token(&text), Ok(ONE));
        assert_eq!(format!("{read:?}"), "TokenSet(2)");
    }

    #[test]
    fn a_file_that_cannot_be_used_is_explained_without_its_secrets() {
        for (text, why) in [
            ("", "no token in the file"),
            ("# nothing\n", "no token in the file"),
            ("shortsecret", "line 1: a token has at least 16"),
            ("\nname shortsecret", "line 2: a token has at least 16"),
            ("a name 0123456789secret", "line 1: write a token"),
            ("0123456789secret #ours", "line 1: a comment has a line"),
            ("0123456789secret\t#0123456789secret", "line 1: a comment"),
            (
                "0123456789secret prometheus-at-home",
                "write the name first",
            ),
            ("0123456789/+=_-secret ops", "line 1: the first of two"),
            ("0123456789secr\u{e9}t0123", "line 1: a token has letters"),
        ] {
            let error = TokenSet::parse(text).unwrap_err();
            assert!(error.contains(why), "{error}");
            assert!(!error.contains("secr"), "{error}");
            assert_eq!(first_token(text), Err(error));
        }
        let many = format!("{ONE}\n").repeat(TOKENS_MAX + 1);
        assert!(TokenSet::parse(&many).unwrap_err().contains("more than"));
    }

    #[test]
    fn a_token_is_asked_for_everywhere_once_there_are_some() {
        let tokens = TokenAuthorizer::new(Some(set(ONE)));
        for listener in anywhere() {
            let check = |header: Option<&str>| tokens.check(header, listener);
            assert_eq!(check(Some("Bearer 0123456789abcdef")), Ok(()));
            assert_eq!(check(Some("bearer  0123456789abcdef")), Ok(()));
            for wrong in [
                None,
                Some(ONE),
                Some("Bearer"),
                Some("Bearer "),
                Some("Bearer fedcba9876543210"),
                Some("Basic 0123456789abcdef"),
            ] {
                let refused = check(wrong);
                assert!(
                    matches!(refused, Err(AuthorizationRefusal::Token(_))),
                    "{wrong:?}"
                );
            }
        }
    }

    async fn login(
        tokens: &TokenAuthorizer,
        authorization: Option<&str>,
        listener: IpAddr,
    ) -> (LoginKind, bool) {
        let origin = RequestOrigin {
            authorization,
            identity: None,
            client: listener,
            listener,
        };
        let login = tokens.identify(origin).await.unwrap();
        (login.kind, login.is_logged_in)
    }

    #[tokio::test]
    async fn a_client_with_a_token_has_logged_in() {
        let (tokens, none) = (
            TokenAuthorizer::new(Some(set(ONE))),
            TokenAuthorizer::default(),
        );
        let [loopback, _, elsewhere, _] = anywhere();
        let right = Some("Bearer 0123456789abcdef");
        for (tokens, authorization, listener, kind, is_logged_in) in [
            (&tokens, right, elsewhere, LoginKind::Token, true),
            (&tokens, Some("Bearer x"), loopback, LoginKind::Token, false),
            (&tokens, None, loopback, LoginKind::Token, false),
            (&none, None, loopback, LoginKind::Nothing, false),
            (&none, None, elsewhere, LoginKind::Token, false),
        ] {
            let found = login(tokens, authorization, listener).await;
            assert_eq!(found, (kind, is_logged_in), "{authorization:?} {listener}");
        }
    }

    #[test]
    fn without_a_file_only_loopback_is_open() {
        let tokens = TokenAuthorizer::default();
        let open = anywhere().map(|listener| tokens.check(None, listener).is_ok());
        assert_eq!(open, [true, true, false, false]);
        let refused = tokens.check(None, anywhere()[2]);
        assert!(
            matches!(refused, Err(AuthorizationRefusal::Right(text)) if text.contains("--token-file"))
        );
    }

    #[test]
    fn other_tokens_count_at_once() {
        let tokens = TokenAuthorizer::new(Some(set(ONE)));
        let (listener, header) = (anywhere()[2], format!("Bearer {OTHER}"));
        assert!(tokens.check(Some(&header), listener).is_err());
        assert!(tokens.replace(Some(set(OTHER))));
        assert!(!tokens.replace(Some(set(OTHER))));
        assert!(tokens.check(Some(&header), listener).is_ok());
    }
}
