//! The one HTTP server. `annulus serve`, `annulus store` and `annulus gateway` start it with other
//! routes each.

#![warn(clippy::unwrap_used)]

mod access;
mod tokens;

pub use access::{Authorizer, Refusal, RequestOrigin, RequestedOperation, RequiredRight};
pub use tokens::{TokenSet, Tokens, first_token};
