//! Keys of a search that the service does not know.
//!
//! A key that is left unread may have been meant to restrict the search, so the answer would hold
//! rows that the client did not want. A service that answers only clients refuses such a search,
//! and says which key it is. One next to ScyllaDB takes unknown keys next to `vector`, as ScyllaDB
//! adds keys from version to version; it counts them, and logs each name once. Within a filter they
//! are always refused.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Mutex, PoisonError};

use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::error::ApiError;
use super::filter_values::JsonScope;
use crate::metrics::ServiceMetrics;
use crate::options::UnknownKeyRule;

/// The keys of a search.
const OF_SEARCH: [&str; 8] = [
    "vector",
    "limit",
    "filter",
    "routing",
    "return_columns",
    "min_time_us",
    "exact",
    "debug",
];

/// The keys of a search of texts.
const OF_WORDS: [&str; 8] = [
    "query",
    "words",
    "limit",
    "filter",
    "routing",
    "return_columns",
    "min_time_us",
    "debug",
];

/// The keys of a request for all texts that match.
const OF_MATCHES: [&str; 6] = ["query", "words", "limit", "filter", "after", "min_time_us"];

/// The keys of a request to mark texts up.
const OF_HIGHLIGHT: [&str; 4] = ["query", "words", "documents", "options"];

/// The keys of a request to score texts.
const OF_SCORES: [&str; 4] = ["query", "words", "texts", "filter"];

/// The keys of a filter.
const OF_FILTER: [&str; 5] = ["restrictions", "allow_filtering", "and", "or", "not"];

/// The keys of a condition that is made of others. Any of them makes an object one.
const OF_CONDITION: [&str; 3] = ["and", "or", "not"];

/// The keys of a restriction, of which the last is only that of the entry of a map.
const OF_RESTRICTION: [&str; 4] = ["type", "lhs", "rhs", "key"];

/// The type of a restriction that has all [keys](OF_RESTRICTION).
const ENTRY: &str = "[]==";

/// The most unknown keys that are reported of one search.
const FOUND_MAX: usize = 8;

/// The most names that are logged.
const LOGGED_MAX: usize = 100;

/// The longest part of a name that is shown, in characters.
const SHOWN_MAX: usize = 64;

/// A key that the service does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct UnknownKey {
    /// The name of the key.
    name: String,
    /// The object that has the key, as a path; empty for the search itself.
    path: String,
    /// The keys that the service knows there.
    known: &'static [&'static str],
}

impl UnknownKey {
    /// A key of a search itself.
    pub(super) fn of_search(name: &str) -> UnknownKey {
        UnknownKey {
            name: shown(name),
            path: String::new(),
            known: &OF_SEARCH,
        }
    }

    /// Whether the key is in the filter of the search.
    fn is_in_filter(&self) -> bool {
        !self.path.is_empty()
    }

    fn error(&self) -> ApiError {
        let UnknownKey { name, path, known } = self;
        let place = match self.is_in_filter() {
            true => format!("in {path} "),
            false => String::new(),
        };
        let nearest = known.iter().min_by_key(|known| distance(name, known));
        ApiError::BadRequest(format!(
            "unknown key {name:?} {place}of the request: did you mean {:?}? Known keys are {}",
            nearest.unwrap_or(&""),
            known.join(", ")
        ))
    }
}

/// The unknown keys in the JSON of a search or a filter, some of them if there are many. If the
/// JSON is broken, those before the fault.
pub(super) fn find(json: &[u8], of: JsonScope) -> Vec<UnknownKey> {
    let found = RefCell::default();
    let walk = KeyWalk {
        found: &found,
        level: match of {
            JsonScope::Filter => KeyDepth::Filter,
            _ => KeyDepth::Search,
        },
        of_request: of_request(of),
        at: None,
    };
    let mut json = serde_json::Deserializer::from_slice(json);
    // Whatever is wrong is found again by those who read the search.
    let _ = walk.deserialize(&mut json);
    found.into_inner()
}

/// The keys of a request.
fn of_request(of: JsonScope) -> &'static [&'static str] {
    match of {
        JsonScope::Search => &OF_SEARCH,
        JsonScope::Filter => &OF_FILTER,
        JsonScope::Words => &OF_WORDS,
        JsonScope::Matches => &OF_MATCHES,
        JsonScope::Highlight => &OF_HIGHLIGHT,
        JsonScope::Scores => &OF_SCORES,
    }
}

/// The unknown keys that a listener has met.
#[derive(Default)]
pub(super) struct UnknownKeyCheck {
    rule: UnknownKeyRule,
    logged: Mutex<BTreeSet<String>>,
}

impl UnknownKeyCheck {
    /// None met yet.
    pub(super) fn new(rule: UnknownKeyRule) -> UnknownKeyCheck {
        UnknownKeyCheck {
            rule,
            logged: Mutex::default(),
        }
    }

    /// Refuses the search that has these unknown keys, or counts them.
    pub(super) fn take(
        &self,
        keys: &[UnknownKey],
        metrics: &ServiceMetrics,
    ) -> Result<(), ApiError> {
        let is_refused = |key: &&UnknownKey| match self.rule {
            UnknownKeyRule::Refused => true,
            UnknownKeyRule::Counted => key.is_in_filter(),
        };
        if let Some(key) = keys.iter().find(is_refused) {
            return Err(key.error());
        }
        for key in keys {
            metrics.unknown_key();
            let mut logged = self.logged.lock().unwrap_or_else(PoisonError::into_inner);
            if logged.len() < LOGGED_MAX && logged.insert(key.name.clone()) {
                tracing::warn!(
                    key = key.name,
                    "searches have a key that this version does not know, and leaves unread"
                );
            }
        }
        Ok(())
    }
}

/// Walks through the JSON of a search and gathers its unknown keys.
#[derive(Clone, Copy)]
struct KeyWalk<'a> {
    found: &'a RefCell<Vec<UnknownKey>>,
    level: KeyDepth,
    /// The keys of the request itself.
    of_request: &'static [&'static str],
    /// The position of the restriction.
    at: Option<usize>,
}

#[derive(Clone, Copy, PartialEq)]
enum KeyDepth {
    Search,
    Filter,
    Restrictions,
    Restriction,
}

impl KeyWalk<'_> {
    fn at(self, level: KeyDepth) -> Self {
        KeyWalk { level, ..self }
    }

    fn known(self) -> &'static [&'static str] {
        match self.level {
            KeyDepth::Search => self.of_request,
            KeyDepth::Filter => &OF_FILTER,
            KeyDepth::Restrictions => &[],
            KeyDepth::Restriction => &OF_RESTRICTION,
        }
    }

    fn note(self, name: &str, known: &'static [&'static str]) {
        let path = match (self.level, self.at) {
            (KeyDepth::Search, _) => String::new(),
            (_, Some(at)) => format!("filter.restrictions[{at}]"),
            (_, None) => "filter".to_owned(),
        };
        let mut found = self.found.borrow_mut();
        if found.len() < FOUND_MAX {
            found.push(UnknownKey {
                name: shown(name),
                path,
                known,
            });
        }
    }
}

impl<'de> DeserializeSeed<'de> for KeyWalk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for KeyWalk<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E: Error>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E: Error>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E: Error>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E: Error>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E: Error>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E: Error>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let mut at = 0;
        loop {
            let walk = KeyWalk {
                at: Some(at),
                ..self.at(KeyDepth::Restriction)
            };
            let next = match self.level {
                KeyDepth::Restrictions => elements.next_element_seed(walk)?,
                _ => elements.next_element::<IgnoredAny>()?.map(drop),
            };
            if next.is_none() {
                return Ok(());
            }
            at += 1;
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<(), A::Error> {
        let known = self.known();
        let (mut kind, mut has_key) = (None, false);
        while let Some(name) = fields.next_key::<Cow<'_, str>>()? {
            let walk = match (self.level, &*name) {
                (KeyDepth::Search, "filter") => Some(self.at(KeyDepth::Filter)),
                (KeyDepth::Filter, "restrictions") => Some(self.at(KeyDepth::Restrictions)),
                (KeyDepth::Filter | KeyDepth::Restriction, "and" | "or") => {
                    Some(self.at(KeyDepth::Restrictions))
                }
                (KeyDepth::Filter | KeyDepth::Restriction, "not") => {
                    Some(self.at(KeyDepth::Restriction))
                }
                (KeyDepth::Restriction, "type") => {
                    kind = fields.next_value::<Option<String>>()?;
                    continue;
                }
                _ => None,
            };
            has_key |= self.level == KeyDepth::Restriction && name == "key";
            let is_condition = OF_CONDITION.contains(&&*name);
            let is_part = self.level == KeyDepth::Restriction && is_condition;
            if !known.contains(&&*name) && !is_part {
                self.note(&name, known);
            }
            match walk {
                Some(walk) => fields.next_value_seed(walk)?,
                None => {
                    fields.next_value::<IgnoredAny>()?;
                }
            }
        }
        if has_key && kind.is_some_and(|kind| kind != ENTRY) {
            self.note("key", &OF_RESTRICTION[..3]);
        }
        Ok(())
    }
}

/// A name, cut where it is too long to be shown.
fn shown(name: &str) -> String {
    name.chars().take(SHOWN_MAX).collect()
}

/// The number of characters to add, to leave out or to change that makes one name of the other.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (line, from) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (column, to) in b.iter().enumerate() {
            let changed = diagonal + usize::from(from != *to);
            diagonal = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_keys_are_found_at_any_depth_with_the_nearest_known_one() {
        for (json, named, nearest) in [
            (
                r#"{"vector":[1],"filtr":{"restrictions":[]}}"#,
                "filtr",
                "filter",
            ),
            (r#"{"limt":2,"vector":[1]}"#, "limt", "limit"),
            (r#"{"Vector":[1]}"#, "Vector", "vector"),
            (
                r#"{"vector":[1],"k":10}"#,
                "\"k\" of",
                "Known keys are vector, limit",
            ),
            (
                r#"{"vector":[1],"filter":{"restriction":[]}}"#,
                "\"restriction\" in filter of",
                "restrictions",
            ),
            (
                r#"{"filter":{"restrictions":[{"type":"==","lhs":"a","rhs":1},{"type":"==","lsh":"a","rhs":1}]}}"#,
                "\"lsh\" in filter.restrictions[1] of",
                "lhs",
            ),
            (
                r#"{"filter":{"restrictions":[{"key":"k","lhs":"a","rhs":1,"type":"=="}]}}"#,
                "\"key\" in filter.restrictions[0]",
                "Known keys are type, lhs, rhs",
            ),
        ] {
            let found = find(json.as_bytes(), JsonScope::Search);
            let message = found[0].error().to_string();
            assert_eq!(found.len(), 1, "{message}");
            assert!(
                message.contains(named) && message.contains(nearest),
                "{message}"
            );
        }
        let of_filter = find(br#"{"restrictions":[],"allow":true}"#, JsonScope::Filter);
        assert!(of_filter[0].is_in_filter());
        let message = of_filter[0].error().to_string();
        assert!(message.contains("allow_filtering"), "{message}");
    }

    #[test]
    fn conditions_made_of_others_and_requests_on_texts_have_keys_of_their_own() {
        let leaf = r#"{"type":"==","lhs":"a","rhs":1}"#;
        let filter = format!(r#"{{"or":[{leaf},{{"not":{{"and":[{leaf}]}}}}]}}"#);
        let search = format!(r#"{{"vector":[1],"filter":{filter}}}"#);
        assert_eq!(find(search.as_bytes(), JsonScope::Search), []);
        let search = format!(r#"{{"words":"a","filter":{filter}}}"#);
        assert_eq!(find(search.as_bytes(), JsonScope::Words), []);
        for (json, of) in [
            (r#"{"query":"a","vector":[1]}"#, JsonScope::Words),
            (r#"{"query":"a","routing":true}"#, JsonScope::Matches),
            (r#"{"query":"a","texts":[]}"#, JsonScope::Highlight),
            (r#"{"query":"a","documents":[]}"#, JsonScope::Scores),
            (r#"{"or":[{"not":{"lsh":"a"}}]}"#, JsonScope::Filter),
            (r#"{"or":[],"xor":[]}"#, JsonScope::Filter),
        ] {
            assert_eq!(find(json.as_bytes(), of).len(), 1, "{json}");
        }
    }

    #[test]
    fn known_keys_are_not_found() {
        for json in [
            r#"{"vector":[1,2],"limit":1,"filter":{"restrictions":[{"type":"[]==","lhs":"m","key":{"x":1},
                "rhs":{"y":2}},{"type":"IN","lhs":"a","rhs":[{"z":3}]}],"allow_filtering":true},"routing":true,
                "return_columns":["a"],"min_time_us":1,"exact":true,"debug":true}"#,
            r#"{"vector":[1],"filter":null}"#,
            r#"[[1],2,{"x":1}]"#,
            "{",
            "",
            "7",
        ] {
            assert_eq!(find(json.as_bytes(), JsonScope::Search), [], "{json}");
        }
    }

    #[test]
    fn a_search_with_many_unknown_keys_costs_little() {
        let keys: Vec<String> = (0..1_000).map(|n| format!("\"{n:0>500}\":1")).collect();
        let json = format!("{{{}}}", keys.join(","));
        let found = find(json.as_bytes(), JsonScope::Search);
        assert_eq!(found.len(), FOUND_MAX);
        assert!(found.iter().all(|key| key.name.len() == SHOWN_MAX));
    }

    #[test]
    fn next_to_scylladb_unknown_keys_are_counted_and_logged_once() {
        let metrics = ServiceMetrics::new();
        let met = UnknownKeyCheck::new(UnknownKeyRule::Counted);
        for n in 0..2 * LOGGED_MAX {
            let keys = [UnknownKey::of_search(&format!("more{n}"))];
            assert_eq!(met.take(&keys, &metrics), Ok(()));
            assert_eq!(met.take(&keys, &metrics), Ok(()));
        }
        assert_eq!(met.logged.lock().unwrap().len(), LOGGED_MAX);
        let counted = format!("request_keys_unknown_total {}\n", 4 * LOGGED_MAX);
        assert!(metrics.registry().text().unwrap().contains(&counted));
        let in_filter = find(br#"{"filter":{"x":1}}"#, JsonScope::Search);
        assert!(met.take(&in_filter, &metrics).is_err());
        let strict = UnknownKeyCheck::new(UnknownKeyRule::Refused);
        assert!(
            strict
                .take(&[UnknownKey::of_search("x")], &metrics)
                .is_err()
        );
    }
}
