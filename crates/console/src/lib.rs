//! The console: a page in the browser for those who begin, develop and operate.
//!
//! The page is plain files, which the program has in itself ([`pages`]); no request leaves the
//! machine. It works by the routes that all clients use. Here are those that fit nowhere else:
//!
//! - the settings of the process ([`SettingLines`]),
//! - the embeddings of sentences, from a server that the operator names ([`EmbedService`]).
//!
//! Login and logout are the HTTP server's ([`http_server::SessionFacts`]).

#![warn(clippy::unwrap_used)]

mod embed;
mod files;
mod pages;
mod settings;

pub use embed::EmbedService;
pub use pages::pages;
pub use settings::{SettingLine, SettingLines};
