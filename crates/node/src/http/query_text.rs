//! The query string of a URI, as forms of web pages spell it.

use std::collections::BTreeMap;

use super::failure::HttpFailure;

/// The parameters of a query string, by their names.
///
/// # Errors
/// A parameter that comes twice, and text that is no UTF-8.
pub(super) fn parameters(query: &str) -> Result<BTreeMap<String, String>, HttpFailure> {
    let mut parameters = BTreeMap::new();
    for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
        let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
        let (name, value) = (unescaped(name)?, unescaped(value)?);
        if let Some(twice) = parameters.insert(name.clone(), value) {
            return Err(HttpFailure::bad_request(
                format!("the parameter {name} comes twice, first as {twice}"),
                "send it once",
            ));
        }
    }
    Ok(parameters)
}

fn unescaped(text: &str) -> Result<String, HttpFailure> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        let hex = |byte: Option<u8>| byte.and_then(|byte| char::from(byte).to_digit(16));
        bytes.push(match byte {
            b'+' => b' ',
            b'%' => match (hex(rest.next()), hex(rest.next())) {
                (Some(high), Some(low)) => (high << 4 | low) as u8,
                _ => return Err(malformed(text)),
            },
            byte => byte,
        });
    }
    String::from_utf8(bytes).map_err(|_| malformed(text))
}

fn malformed(text: &str) -> HttpFailure {
    HttpFailure::bad_request(
        format!("{text} is not a text with percent signs as a query string has it"),
        "escape UTF-8 byte by byte, such as %C3%A9",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_string_is_read_as_forms_spell_it() {
        let read = parameters("id=2&name=green+tea%21&x&%C3%A9=%25").unwrap();
        let read: Vec<(&str, &str)> = read.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        assert_eq!(
            read,
            [("id", "2"), ("name", "green tea!"), ("x", ""), ("é", "%")]
        );
        for wrong in ["a=%", "a=%4", "a=%zz", "a=%ff", "a=1&a=2"] {
            assert!(parameters(wrong).is_err(), "{wrong}");
        }
    }
}
