//! Counts the values in the filter of a request before the request is read.
//!
//! A value of a filter takes many times the memory of its text. So a filter with more values than
//! one may have is refused while its text is all that there is. What is read here is dropped, and
//! mistakes are left to those who read the search.

use std::cell::Cell;
use std::fmt;

use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

/// The fewest bytes of JSON that a value of a list takes.
const BYTES_MIN: usize = 2;

/// The JSON that has the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum JsonScope {
    /// A search of vectors.
    Search,
    /// The filter of a search.
    Filter,
    /// A search of texts.
    Words,
    /// A request for all texts that match.
    Matches,
    /// Texts to mark up.
    Highlight,
    /// Texts to score.
    Scores,
}

/// Whether a filter has more than `max` values. A tuple has as many as it has elements.
pub(super) fn exceed(max: usize, json: &[u8], of: JsonScope) -> bool {
    // Most searches are too short to have so many.
    if json.len() / BYTES_MIN <= max {
        return false;
    }
    let left = Cell::new(Some(max));
    let level = match of {
        JsonScope::Filter => ValueDepth::Filter,
        JsonScope::Search => ValueDepth::Search,
        JsonScope::Words | JsonScope::Matches | JsonScope::Highlight | JsonScope::Scores => {
            ValueDepth::Request
        }
    };
    let mut json = serde_json::Deserializer::from_slice(json);
    // Whatever is wrong is found again by those who read the search.
    let _ = ValueCounter { left: &left, level }.deserialize(&mut json);
    left.get().is_none()
}

/// Counts the values in a part of a search.
#[derive(Clone, Copy)]
struct ValueCounter<'a> {
    /// The number of values that may still come; `None` after one too many.
    left: &'a Cell<Option<usize>>,
    level: ValueDepth,
}

#[derive(Clone, Copy)]
enum ValueDepth {
    Search,
    /// Another request than a search of vectors.
    Request,
    Filter,
    Restrictions,
    Restriction,
    Values,
}

/// The name of a field.
enum FieldKind {
    Filter,
    /// A list of restrictions.
    Restrictions,
    /// A restriction, or a condition made of some.
    Negation,
    Value,
    Other,
}

impl ValueCounter<'_> {
    fn at(self, level: ValueDepth) -> Self {
        ValueCounter { level, ..self }
    }

    /// The counter for a field of an object; `None` if there are no values to count in it.
    fn of_field(self, name: &FieldKind) -> Option<Self> {
        match (self.level, name) {
            (ValueDepth::Search | ValueDepth::Request, FieldKind::Filter) => {
                Some(self.at(ValueDepth::Filter))
            }
            // An object in place of a list is a negation in the form of a list.
            (
                ValueDepth::Filter | ValueDepth::Restrictions | ValueDepth::Restriction,
                FieldKind::Restrictions,
            ) => Some(self.at(ValueDepth::Restrictions)),
            (
                ValueDepth::Filter | ValueDepth::Restrictions | ValueDepth::Restriction,
                FieldKind::Negation,
            ) => Some(self.at(ValueDepth::Restriction)),
            (ValueDepth::Restrictions | ValueDepth::Restriction, FieldKind::Value) => {
                Some(self.at(ValueDepth::Values))
            }
            (ValueDepth::Values, _) => Some(self),
            _ => None,
        }
    }

    fn count<E: Error>(self) -> Result<(), E> {
        if let ValueDepth::Values = self.level {
            let left = self.left.get().and_then(|left| left.checked_sub(1));
            self.left.set(left);
            left.ok_or_else(|| E::custom("too many values"))?;
        }
        Ok(())
    }
}

impl<'de> DeserializeSeed<'de> for ValueCounter<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ValueCounter<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        self.count()
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        self.count()
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        self.count()
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        self.count()
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        self.count()
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        self.count()
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        // The library reads objects in the form of lists as well, with fields by their places.
        let of_elements = match self.level {
            ValueDepth::Search => {
                elements.next_element::<IgnoredAny>()?;
                self.at(ValueDepth::Filter)
            }
            ValueDepth::Request => self.at(ValueDepth::Filter),
            ValueDepth::Filter => self.at(ValueDepth::Restrictions),
            ValueDepth::Restrictions => self.at(ValueDepth::Restriction),
            ValueDepth::Restriction | ValueDepth::Values => self.at(ValueDepth::Values),
        };
        while elements.next_element_seed(of_elements)?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        while let Some(name) = fields.next_key::<FieldKind>()? {
            match self.of_field(&name) {
                Some(counter) => fields.next_value_seed(counter)?,
                None => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

impl<'de> Deserialize<'de> for FieldKind {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FieldKind, D::Error> {
        struct FieldKindVisitor;
        impl Visitor<'_> for FieldKindVisitor {
            type Value = FieldKind;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a field")
            }

            fn visit_str<E: Error>(self, name: &str) -> Result<FieldKind, E> {
                Ok(match name {
                    "filter" => FieldKind::Filter,
                    "restrictions" | "and" | "or" => FieldKind::Restrictions,
                    "not" => FieldKind::Negation,
                    "rhs" | "key" => FieldKind::Value,
                    _ => FieldKind::Other,
                })
            }
        }
        deserializer.deserialize_str(FieldKindVisitor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_counted_wherever_they_stand() {
        for (restrictions, values) in [
            (r#"{"type":"==","lhs":"a","rhs":7}"#, 1),
            (r#"{"type":"IN","lhs":"a","rhs":[1,"x",2.5,true,null]}"#, 5),
            (
                r#"{"rhs":[[1,2],[3,4],[5,6]],"type":"()IN()","lhs":["a","b"]}"#,
                6,
            ),
            (r#"{"type":"[]==","lhs":"m","key":"k","rhs":"v"}"#, 2),
            (
                r#"{"type":"==","lhs":"a","rhs":1},{"type":"<","lhs":"b","rhs":2}"#,
                2,
            ),
            (r#"{"type":"==","lhs":"a","rhs":{"x":[1,2,3]}}"#, 3),
        ] {
            // Blanks make it long enough to be looked at.
            let filter = format!(r#"{{"restrictions":[{restrictions}]}}{:99}"#, "");
            assert!(
                !exceed(values, filter.as_bytes(), JsonScope::Filter),
                "{filter}"
            );
            assert!(
                exceed(values - 1, filter.as_bytes(), JsonScope::Filter),
                "{filter}"
            );
            let search =
                format!(r#"{{"vector":[1,2,3],"return_columns":["a"],"filter":{filter}}}"#);
            assert!(
                !exceed(values, search.as_bytes(), JsonScope::Search),
                "{search}"
            );
            assert!(
                exceed(values - 1, search.as_bytes(), JsonScope::Search),
                "{search}"
            );
        }
    }

    #[test]
    fn values_of_conditions_made_of_others_are_counted() {
        let leaf = |n: u8| format!(r#"{{"type":"==","lhs":"a","rhs":{n}}}"#);
        let nested = format!(
            r#"{{"or":[{},{{"not":{{"and":[{},{}]}}}}]}}{:99}"#,
            leaf(1),
            leaf(2),
            leaf(3),
            ""
        );
        assert!(!exceed(3, nested.as_bytes(), JsonScope::Filter));
        assert!(exceed(2, nested.as_bytes(), JsonScope::Filter));
        let search = format!(r#"{{"query":"a b c d","filter":{nested}}}"#);
        assert!(!exceed(3, search.as_bytes(), JsonScope::Words));
        assert!(exceed(2, search.as_bytes(), JsonScope::Words));
    }

    #[test]
    fn json_that_is_no_search_has_no_values() {
        for json in [
            "",
            "[[1,2,3,4],5]",
            r#"{"filter":null,"vector":[1,2,3]}"#,
            r#"{"filter":[1,2,3,4,5]}"#,
            r#"{"filter":{"restrictions":7},"rhs":[1,2,3]}"#,
        ] {
            assert!(!exceed(0, json.as_bytes(), JsonScope::Search), "{json}");
        }
        let in_a_list = br#"[[1,2,3],9,[[["IN","a",[1,2,3]]],true]]"#;
        assert!(exceed(2, in_a_list, JsonScope::Search));
        // What breaks off after too many has too many.
        let broken = br#"{"filter":{"restrictions":[{"rhs":[1,2"#;
        assert!(exceed(1, broken, JsonScope::Search));
    }
}
