//! The TOML file that holds settings under their long names.

use std::path::Path;

use anyhow::Context;
use serde::de::DeserializeOwned;

use crate::exit::ProcessFailure;

/// Reads a file of settings.
pub fn read<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let text = std::fs::read_to_string(path).map_err(|error| error.to_string());
    text.and_then(|text| toml::from_str(&text).map_err(|error| error.to_string()))
        .map_err(ProcessFailure::Configuration)
        .with_context(|| format!("configuration file {}", path.display()))
}
