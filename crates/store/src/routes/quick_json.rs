//! Reads the usual form of a search in JSON quickly.
//!
//! A search of 1,536 dimensions is 1,536 numbers and little else. A JSON library spends most of its
//! time on all the forms that a number may have. Databases and clients write the vector first, in
//! numbers of few digits. This form is read here in one pass. Everything else, mistakes above all,
//! is left to the library, which also says what is wrong. The values read here are bit for bit
//! those that the library would read.

use std::fmt;
use std::num::NonZeroUsize;

use serde::de::{Error, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use store_api::types::{AnnRequest, Filter};

/// The number of digits that always fit into a `u64`.
const DIGITS_MAX: usize = 19;

/// The largest integer up to which the conversion into a 64-bit float is exact.
const EXACT_MAX: u64 = 1 << 53;

/// The powers of ten by which the library divides and multiplies.
const POWERS_OF_TEN: [f64; 41] = [
    1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16,
    1e17, 1e18, 1e19, 1e20, 1e21, 1e22, 1e23, 1e24, 1e25, 1e26, 1e27, 1e28, 1e29, 1e30, 1e31, 1e32,
    1e33, 1e34, 1e35, 1e36, 1e37, 1e38, 1e39, 1e40,
];

/// A search that was read.
#[derive(Debug, PartialEq)]
pub(crate) struct ParsedSearch {
    /// The search.
    pub search: AnnRequest,
    /// The names of its fields that are not known; those of a filter are left to the library.
    pub unknown: Vec<String>,
}

/// Reads a search. `None` if it doesn't have the usual form.
pub(crate) fn read(body: &[u8]) -> Option<ParsedSearch> {
    let mut text = UnreadText(body);
    text.skip(b'{')?;
    text.skip_name(b"\"vector\"")?;
    text.skip(b':')?;
    text.skip(b'[')?;
    let mut vector = Vec::with_capacity(body.len() / 8);
    loop {
        vector.push(text.number()?);
        match text.next()? {
            b',' => {}
            b']' => break,
            _ => return None,
        }
    }
    let rest = match text.next()? {
        b'}' if text.is_blank() => FieldsAfterVector::default(),
        // Another field follows, so the rest is an object without its first brace.
        b',' if text.peek() == Some(b'"') => {
            let object = [b"{", text.0].concat();
            serde_json::from_slice(&object).ok()?
        }
        _ => return None,
    };
    let search = AnnRequest {
        vector,
        limit: rest.limit.unwrap_or(NonZeroUsize::MIN),
        filter: rest.filter.flatten(),
        routing: rest.routing.unwrap_or(true),
        return_columns: rest.return_columns.flatten(),
        min_time_us: rest.min_time_us.flatten(),
        exact: rest.exact.unwrap_or(false),
        debug: rest.debug.unwrap_or(false),
    };
    Some(ParsedSearch {
        search,
        unknown: rest.unknown,
    })
}

/// The most unknown fields of a search that is read quickly.
const UNKNOWN_MAX: usize = 8;

/// The fields after the vector. None of them may come twice, nor a second vector.
#[derive(Default)]
struct FieldsAfterVector {
    limit: Option<NonZeroUsize>,
    filter: Option<Option<Filter>>,
    routing: Option<bool>,
    return_columns: Option<Option<Vec<String>>>,
    min_time_us: Option<Option<i64>>,
    exact: Option<bool>,
    debug: Option<bool>,
    unknown: Vec<String>,
}

impl<'de> Deserialize<'de> for FieldsAfterVector {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldsAfterVector, D::Error> {
        struct SearchFieldsVisitor;
        impl<'de> Visitor<'de> for SearchFieldsVisitor {
            type Value = FieldsAfterVector;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the fields of a search")
            }

            fn visit_map<A: MapAccess<'de>>(
                self,
                mut fields: A,
            ) -> Result<FieldsAfterVector, A::Error> {
                let mut rest = FieldsAfterVector::default();
                // A name with escapes can't be borrowed, and is left to the library.
                while let Some(name) = fields.next_key::<&str>()? {
                    match name {
                        "limit" => take(&mut rest.limit, &mut fields)?,
                        "filter" => take(&mut rest.filter, &mut fields)?,
                        "routing" => take(&mut rest.routing, &mut fields)?,
                        "return_columns" => take(&mut rest.return_columns, &mut fields)?,
                        "min_time_us" => take(&mut rest.min_time_us, &mut fields)?,
                        "exact" => take(&mut rest.exact, &mut fields)?,
                        "debug" => take(&mut rest.debug, &mut fields)?,
                        "vector" => return Err(A::Error::duplicate_field("vector")),
                        _ if rest.unknown.len() == UNKNOWN_MAX => {
                            return Err(A::Error::custom("too many unknown fields"));
                        }
                        name => {
                            rest.unknown.push(name.to_owned());
                            fields.next_value::<IgnoredAny>()?;
                        }
                    }
                }
                Ok(rest)
            }
        }
        deserializer.deserialize_map(SearchFieldsVisitor)
    }
}

/// Takes the value of a field that has not come before.
fn take<'de, T: Deserialize<'de>, A: MapAccess<'de>>(
    field: &mut Option<T>,
    fields: &mut A,
) -> Result<(), A::Error> {
    match field {
        Some(_) => Err(A::Error::custom("a field comes twice")),
        None => {
            *field = Some(fields.next_value()?);
            Ok(())
        }
    }
}

/// The part of the body that is still to be read.
struct UnreadText<'a>(&'a [u8]);

impl UnreadText<'_> {
    /// Skips blanks and returns the next byte without taking it.
    fn peek(&mut self) -> Option<u8> {
        while let [b' ' | b'\n' | b'\r' | b'\t', rest @ ..] = self.0 {
            self.0 = rest;
        }
        self.0.first().copied()
    }

    /// Skips blanks and takes the next byte.
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek()?;
        self.0 = &self.0[1..];
        Some(byte)
    }

    fn is_blank(&mut self) -> bool {
        self.peek().is_none()
    }

    fn skip(&mut self, expected: u8) -> Option<()> {
        (self.next()? == expected).then_some(())
    }

    fn skip_name(&mut self, name: &[u8]) -> Option<()> {
        self.peek()?;
        self.0 = self.0.strip_prefix(name)?;
        Some(())
    }

    fn take_if(&mut self, byte: u8) -> bool {
        match self.0.strip_prefix(&[byte]) {
            Some(rest) => {
                self.0 = rest;
                true
            }
            None => false,
        }
    }

    /// Takes the digits that follow, adds them to `number`, and returns their count. `number` wraps
    /// if there are more digits than it can hold.
    fn digits(&mut self, number: &mut u64) -> usize {
        let before = self.0.len();
        while let [digit @ b'0'..=b'9', rest @ ..] = self.0 {
            *number = number
                .wrapping_mul(10)
                .wrapping_add(u64::from(digit - b'0'));
            self.0 = rest;
        }
        before - self.0.len()
    }

    /// Reads a number of few digits by the grammar of JSON.
    fn number(&mut self) -> Option<f32> {
        self.peek()?;
        let is_negative = self.take_if(b'-');
        let begins_with_zero = self.0.first() == Some(&b'0');
        let mut mantissa = 0;
        let whole = self.digits(&mut mantissa);
        if whole == 0 || begins_with_zero && whole > 1 {
            return None;
        }
        let mut fraction = 0;
        if self.take_if(b'.') {
            fraction = self.digits(&mut mantissa);
            if fraction == 0 {
                return None;
            }
        }
        if whole + fraction > DIGITS_MAX {
            return None;
        }
        let mut power = 0;
        let has_power = matches!(self.0.first(), Some(b'e' | b'E'));
        if has_power {
            self.0 = &self.0[1..];
            let is_below = self.take_if(b'-');
            if !is_below {
                self.take_if(b'+');
            }
            let mut digits = 0;
            if !(1..=DIGITS_MAX).contains(&self.digits(&mut digits)) {
                return None;
            }
            let digits = i64::try_from(digits).ok()?;
            power = if is_below { -digits } else { digits };
        }
        let magnitude = if fraction == 0 && !has_power {
            if mantissa > EXACT_MAX {
                return None;
            }
            // As in the library, an integer is converted directly, not by way of a 64-bit float.
            mantissa as f32
        } else {
            let power = power.checked_sub(fraction as i64)?;
            let factor = POWERS_OF_TEN.get(usize::try_from(power.unsigned_abs()).ok()?)?;
            let mantissa = mantissa as f64;
            match power < 0 {
                true => (mantissa / factor) as f32,
                false => (mantissa * factor) as f32,
            }
        };
        Some(if is_negative { -magnitude } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Reads a body both ways: quickly, and by the library.
    fn both(body: &str) -> (Option<AnnRequest>, Option<AnnRequest>) {
        let quick = read(body.as_bytes()).map(|read| read.search);
        (quick, serde_json::from_str(body).ok())
    }

    fn bits(search: &AnnRequest) -> Vec<u32> {
        search
            .vector
            .iter()
            .map(|element| element.to_bits())
            .collect()
    }

    #[test]
    fn the_usual_shapes_are_read_quickly() {
        for body in [
            r#"{"vector":[1,-2.5,0.001953125],"limit":10}"#,
            r#"{"vector":[1]}"#,
            " { \"vector\" : [ 1.0 ,\n-0 ] ,\t\"limit\" : 7 } ",
            r#"{"vector":[1e-7,1E+3,-1.5e2],"limit":1,"filter":{"restrictions":[],"allow_filtering":true}}"#,
            r#"{"vector":[1],"filter":null,"more":{"vector":2}}"#,
            r#"{"vector":[1],"routing":false,"return_columns":["a"],"min_time_us":-7,"debug":true}"#,
            r#"{"vector":[1],"exact":true,"limit":2}"#,
            r#"{"vector":[0.12345678901234567,1.2345678901234567e-08]}"#,
        ] {
            let (quick, slow) = both(body);
            assert!(quick.is_some(), "{body}");
            assert_eq!(quick, slow, "{body}");
        }
    }

    #[test]
    fn whatever_else_is_left_to_the_library() {
        for body in [
            "",
            "{",
            "[]",
            "{}",
            r#"{"limit":1,"vector":[1]}"#,
            r#"{"vector":[]}"#,
            r#"{"vector":[1,]}"#,
            r#"{"vector":[1],}"#,
            r#"{"vector":[1]} x"#,
            r#"{"vector":[1],"limit":1} x"#,
            r#"{"vector":[1] "limit":1}"#,
            r#"{"vector":[01]}"#,
            r#"{"vector":[-]}"#,
            r#"{"vector":[+1]}"#,
            r#"{"vector":[1.]}"#,
            r#"{"vector":[.5]}"#,
            r#"{"vector":[1e]}"#,
            r#"{"vector":[1e+]}"#,
            r#"{"vector":[1 2]}"#,
            r#"{"vector":["1"]}"#,
            r#"{"vector":[null]}"#,
            r#"{"vector":[NaN]}"#,
            r#"{"vector":[1],"limit":0}"#,
            r#"{"vector":[1],"limit":null}"#,
            r#"{"vector":[1],"limit":1,"limit":2}"#,
            r#"{"vector":[1],"exact":null}"#,
            r#"{"vector":[1],"exact":"true"}"#,
            r#"{"vector":[1],"vector":[2]}"#,
            r#"{"vector":[1],"vector":null}"#,
            r#"{"vector":[12345678901234567890]}"#,
            r#"{"vector":[0.12345678901234567890]}"#,
            r#"{"vector":[1e300]}"#,
            r#"{"vector":[1e-99999999999999999999]}"#,
            r#"{"vectors":[1]}"#,
        ] {
            assert_eq!(read(body.as_bytes()), None, "{body}");
        }
    }

    #[test]
    fn unknown_fields_are_told_and_those_of_a_filter_left_to_the_library() {
        let unknown = |body: &str| read(body.as_bytes()).map(|read| read.unknown);
        let known = r#"{"vector":[1],"limit":2}"#;
        assert_eq!(unknown(known), Some(Vec::new()));
        let more = r#"{"vector":[1],"filtr":{"restrictions":[]},"k":1}"#;
        assert_eq!(
            unknown(more),
            Some(vec!["filtr".to_owned(), "k".to_owned()])
        );
        for body in [
            r#"{"vector":[1],"filter":{"restrictions":[],"more":1}}"#,
            r#"{"vector":[1],"filter":{"restrictions":[{"type":"==","lhs":"a","rhs":1,"more":1}]}}"#,
        ] {
            assert_eq!(unknown(body), None, "{body}");
        }
    }

    proptest! {
        #[test]
        fn numbers_are_what_the_library_reads(
            floats in proptest::collection::vec(any::<f32>().prop_filter("finite", |x| x.is_finite()), 1..8),
            doubles in proptest::collection::vec(-1.0..1.0f64, 1..8),
            tiny in -1e-6..1e-6f64,
            integer in any::<i32>(),
        ) {
            let floats = serde_json::to_string(&floats).unwrap();
            let doubles = serde_json::to_string(&doubles).unwrap();
            for vector in [floats, doubles, format!("[{tiny:e},{integer}]")] {
                let body = format!(r#"{{"vector":{vector},"limit":3}}"#);
                let (quick, slow) = both(&body);
                if let Some(quick) = quick {
                    prop_assert_eq!(bits(&quick), bits(&slow.unwrap()), "{}", body);
                }
            }
        }

        #[test]
        fn bodies_that_the_library_refuses_are_refused(body in r#"\{"vector":\[[-+0-9.eE, \]]{0,12}\][,}]{0,2}"#) {
            let (quick, slow) = both(&body);
            if quick.is_some() {
                prop_assert_eq!(quick, slow, "{}", body);
            }
        }
    }
}
