//! Checks of values that are known only when a query is executed: its vector and its LIMIT.

use cql::error::CqlError;
use value::finite_vector;

use crate::ordering::SearchForm;

/// The greatest LIMIT.
pub const LIMIT_MAX: u32 = 1_000;

/// The warning with an answer if the caller requested pages smaller than LIMIT.
pub fn paging_warning(form: SearchForm) -> String {
    let name = match form {
        SearchForm::Vector => "Vector Search",
        SearchForm::Words => "Full-Text Search",
        SearchForm::Hybrid => "Hybrid Search",
    };
    format!("Paging is not supported for {name} queries. The entire result set has been returned.")
}

/// The error for a query without LIMIT, or with an unset one.
pub fn no_limit(form: SearchForm) -> CqlError {
    CqlError::invalid(format!("{} must have a limit specified", form.queries()))
}

/// The value of a LIMIT: a serialised `int`.
///
/// # Errors
/// If the bytes are no `int`, or it is not positive.
pub fn limit_value(bytes: &[u8]) -> Result<u32, CqlError> {
    let Ok(limit) = bytes.try_into().map(i32::from_be_bytes) else {
        return Err(CqlError::invalid("Invalid limit value"));
    };
    match u32::try_from(limit) {
        Ok(limit) if limit > 0 => Ok(limit),
        _ => Err(CqlError::invalid("LIMIT must be strictly positive")),
    }
}

/// The number of rows to answer. `limit` is positive, or `None` for an unset marker.
///
/// # Errors
/// If the limit is too great, or unset.
pub fn checked_limit(limit: Option<u32>, form: SearchForm) -> Result<usize, CqlError> {
    let what = match form {
        SearchForm::Vector => "ANN OF",
        SearchForm::Words => "BM25",
        SearchForm::Hybrid => "several searches",
    };
    match limit.ok_or_else(|| no_limit(form))? {
        limit @ 0..=LIMIT_MAX => Ok(limit as usize),
        limit => Err(CqlError::invalid(format!(
            "Use of {what} in an ORDER BY clause requires a LIMIT that is not greater than {LIMIT_MAX}. LIMIT was {limit}"
        ))),
    }
}

/// Whether the answer needs [`paging_warning`].
pub fn is_cut_short(page_size: Option<usize>, limit: usize) -> bool {
    page_size.is_some_and(|rows| rows > 0 && rows < limit)
}

/// The error for a vector of the wrong length.
pub fn wrong_dimensions(wanted: u16, got: usize) -> CqlError {
    CqlError::invalid(format!(
        "All arguments must have the same vector dimensions, but found vector<float, {wanted}> and vector<float, {got}>"
    ))
}

/// Gives a bound vector of another length the error of a literal of another length.
///
/// # Errors
/// If the bytes are whole floats, but not `dimensions` of them.
pub fn check_bound_dimensions(bytes: &[u8], dimensions: u16) -> Result<(), CqlError> {
    if bytes.len().is_multiple_of(4) && bytes.len() != usize::from(dimensions) * 4 {
        return Err(wrong_dimensions(dimensions, bytes.len() / 4));
    }
    Ok(())
}

/// Refuses a vector that has no distance to anything; `column` is for the message.
///
/// # Errors
/// If an element of the vector is NaN or infinite.
pub fn check_finite(vector: &[u8], column: &str) -> Result<(), CqlError> {
    finite_vector(vector)
        .map_err(|error| CqlError::invalid(format!("Invalid value for {column}: {}", error.0)))
}

/// The error for a null vector.
pub fn null_vector(column: &str) -> CqlError {
    CqlError::invalid(format!("Unsupported null value for column {column}"))
}

/// The error for a vector whose marker was left unset.
pub fn unset_vector(column: &str) -> CqlError {
    CqlError::invalid(format!("Unsupported unset value for column {column}"))
}

/// The elements of a serialised `vector<float, n>`.
pub fn elements(vector: &[u8]) -> Vec<f32> {
    let (elements, _) = vector.as_chunks::<4>();
    elements
        .iter()
        .map(|element| f32::from_be_bytes(*element))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits() {
        let form = SearchForm::Vector;
        assert_eq!(checked_limit(Some(1_000), form), Ok(1_000));
        let none = checked_limit(None, form).unwrap_err();
        assert!(none.message.contains("must have a limit specified"));
        let many = checked_limit(Some(1_001), form).unwrap_err();
        assert!(many.message.ends_with("LIMIT was 1001"));
        assert!(is_cut_short(Some(9), 10));
        assert!(!is_cut_short(Some(10), 10));
        assert!(!is_cut_short(None, 10));
    }

    #[test]
    fn lengths_of_bound_vectors() {
        assert_eq!(check_bound_dimensions(&[0; 12], 3), Ok(()));
        assert!(check_bound_dimensions(&[0; 8], 3).is_err());
        // Bytes that are no whole floats are no vector at all, which is another error.
        assert_eq!(check_bound_dimensions(&[0; 7], 3), Ok(()));
        let bytes = [1.5f32, -2.0].map(f32::to_be_bytes).concat();
        assert_eq!(elements(&bytes), [1.5, -2.0]);
    }
}
