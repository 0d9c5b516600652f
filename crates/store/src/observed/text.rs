//! Texts as an index observes them.

use super::UnindexableValue;

/// Decodes a text as the database serialised it. ASCII is UTF-8, too.
pub(super) fn decode(bytes: &[u8]) -> Result<String, UnindexableValue> {
    let text = std::str::from_utf8(bytes);
    let text = text.map_err(|error| UnindexableValue::NotText {
        position: error.valid_up_to(),
    })?;
    Ok(text.to_owned())
}
