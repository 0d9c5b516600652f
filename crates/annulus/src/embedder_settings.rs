//! The settings of the server of embeddings, which two commands have.

use std::path::PathBuf;

use embeddings::{EmbedderError, EmbedderLimits, EmbedderOptions, TextEmbedder};
use web_console::EmbedService;

use crate::exit::{ProcessFailure, lacks};

/// The name of the setting that names the server.
pub const URL: &str = "embeddings-url";

/// The settings as they are set.
#[derive(Debug, Default)]
pub struct GivenEmbedder {
    pub url: Option<String>,
    pub model: Option<String>,
    pub key_file: Option<PathBuf>,
    pub authorities: Option<PathBuf>,
}

impl GivenEmbedder {
    /// The options of the server; `None` for none.
    ///
    /// # Errors
    /// If another setting is set without the one that names the server.
    pub fn resolve(self) -> Result<Option<EmbedderOptions>, ProcessFailure> {
        let others = [
            ("embeddings-model", self.model.is_some()),
            ("embeddings-key-file", self.key_file.is_some()),
            ("embeddings-ca", self.authorities.is_some()),
        ];
        let Some(url) = self.url else {
            return match others.iter().find(|(_, is_set)| *is_set) {
                Some((name, _)) => Err(lacks(name, URL)),
                None => Ok(None),
            };
        };
        let model = self.model;
        Ok(Some(EmbedderOptions {
            url,
            model: model.unwrap_or_else(|| EmbedderOptions::MODEL.to_owned()),
            key_file: self.key_file,
            authorities: self.authorities,
            limits: EmbedderLimits::OF_A_USER,
        }))
    }
}

/// The route for embeddings by this server. Its files are read now.
///
/// # Errors
/// If the URL or a file can't be used.
pub fn embed_service(options: Option<&EmbedderOptions>) -> Result<EmbedService, ProcessFailure> {
    let embedder = options.map(TextEmbedder::new).transpose();
    let embedder = embedder.map_err(|error| match error {
        EmbedderError::File(error) => error.into(),
        EmbedderError::Options(text) | EmbedderError::Server(text) => {
            ProcessFailure::Configuration(text)
        }
    })?;
    Ok(EmbedService::new(embedder))
}

/// A URL as it is shown: its query may have a key.
pub fn without_query(url: &str) -> String {
    url.split('?').next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_of_embeddings_has_a_url() {
        let none = GivenEmbedder::default().resolve().unwrap();
        assert!(!embed_service(none.as_ref()).unwrap().has_server());
        let given = GivenEmbedder {
            key_file: Some("key".into()),
            ..GivenEmbedder::default()
        };
        let error = given.resolve().unwrap_err().to_string();
        assert!(error.contains("embeddings-url is not"), "{error}");
        let given = |url: &str| GivenEmbedder {
            url: Some(url.to_owned()),
            ..GivenEmbedder::default()
        };
        let set = given("http://127.0.0.1:8080/v1/embeddings").resolve();
        let set = set.unwrap().unwrap();
        assert_eq!(set.model, "text-embedding-3-small");
        assert!(embed_service(Some(&set)).unwrap().has_server());
        let wrong = given("nonsense").resolve().unwrap();
        let error = embed_service(wrong.as_ref()).err().unwrap().to_string();
        assert!(error.contains("--embeddings-url"), "{error}");
    }
}
