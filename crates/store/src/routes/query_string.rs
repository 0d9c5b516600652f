//! Reads parameters of a request's query string. All of them are numbers or truth values, so
//! nothing is unescaped.

use std::fmt::Display;
use std::str::FromStr;

use super::error::ApiError;

/// Reads a parameter. `None` if it is not given; an error if it can't be parsed.
pub(super) fn parameter<T>(query: Option<&str>, name: &str) -> Result<Option<T>, ApiError>
where
    T: FromStr,
    T::Err: Display,
{
    let parameters = query.unwrap_or_default().split('&');
    let given = parameters
        .filter_map(|parameter| parameter.split_once('='))
        .find(|(other, _)| *other == name);
    let parsed = given.map(|(_, value)| {
        let wrong = |error| ApiError::BadRequest(format!("parameter {name}={value}: {error}"));
        value.parse().map_err(wrong)
    });
    parsed.transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_found_by_name() {
        let query = Some("parts=true&timeout=5");
        assert_eq!(parameter(query, "timeout"), Ok(Some(5)));
        assert_eq!(parameter(query, "parts"), Ok(Some(true)));
        assert_eq!(parameter::<u64>(query, "time"), Ok(None));
        assert_eq!(parameter::<u64>(None, "timeout"), Ok(None));
        let error = parameter::<u64>(Some("timeout=soon"), "timeout").unwrap_err();
        assert!(error.to_string().contains("timeout=soon"), "{error}");
    }
}
