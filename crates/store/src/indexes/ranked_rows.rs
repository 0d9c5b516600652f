//! The rows of an answer, and how it is written.
//!
//! Keys stay encoded until an answer is written, and are written straight from there. So an answer
//! of ten rows takes as many allocations as one of a thousand.

use bytes::Bytes;
use cql::wire::type_code;
use index::score::DistanceAndScore;
use serde::ser::{Error, SerializeMap, SerializeStruct};
use serde::{Serialize, Serializer};
use serde_json::value::{RawValue, to_raw_value};
use store_api::types::SearchDebug;
use store_api::{KeyValue, MatchedRows, NearestRows, binary, hex};
use value::{CqlType, to_key_json};

use super::plan::ExecutedPlan;
use super::returned::{RequestedColumn, ReturnedValues, TooManyBytes};
use crate::keys::{EncodedValues, KeyColumn, KeySchema, RowPlace};

/// The limit for the room that is reserved for keys, in bytes. The reserve follows the length of
/// the first key, and a long one says little about the others.
const KEYS_RESERVED_MAX: usize = 1 << 20;

/// The rows of an answer, nearest first.
///
/// It serialises as a [`store_api::types::AnnResponse`]. That fails for a key that has no form in
/// JSON.
#[derive(Debug)]
pub(crate) struct RankedRows<'a> {
    schema: &'a KeySchema,
    /// The encoded keys, one after another.
    keys: Vec<u8>,
    /// The end of each key in `keys`.
    ends: Vec<usize>,
    scores: Vec<DistanceAndScore>,
    /// The values of the columns that were requested; `None` if the search requested none.
    returned: Option<Vec<ReturnedValues<'a>>>,
    /// The way in which the search was done.
    plan: Option<ExecutedPlan>,
    /// The plan that the answer shows.
    debug: Option<SearchDebug>,
    /// Whether a value has expired that decides about a row, or is shown.
    is_in_doubt: bool,
    /// Whether the index lacked rows for want of room.
    is_short: bool,
    /// The number of rows that the structure proposed.
    proposed: usize,
    /// The place after which the next page begins.
    next: Option<Bytes>,
}

/// A row of an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RankedRow<'a> {
    /// The encoded key.
    pub key: &'a [u8],
    /// The distance and the similarity score.
    pub scored: DistanceAndScore,
    /// The values that were requested, as CQL serialises them; `None` for null.
    pub values: Vec<Option<&'a [u8]>>,
}

/// The columns of rows as pieces of JSON.
#[derive(Debug)]
pub(crate) struct ColumnPieces {
    /// The keys: an object with an array for each column of the primary key.
    pub primary_keys: Box<RawValue>,
    /// The values next to the keys: an object with an array for each column.
    pub column_values: Box<RawValue>,
}

impl<'a> RankedRows<'a> {
    /// An answer without rows, with room for `rows` of them.
    pub(crate) fn with_capacity(schema: &'a KeySchema, rows: usize) -> RankedRows<'a> {
        RankedRows {
            schema,
            keys: Vec::new(),
            ends: Vec::with_capacity(rows),
            scores: Vec::with_capacity(rows),
            returned: None,
            plan: None,
            debug: None,
            is_in_doubt: false,
            is_short: false,
            proposed: 0,
            next: None,
        }
    }

    /// Notes how many rows the structure proposed. Some of them may have no key any more, and are
    /// no rows of the answer.
    pub(crate) fn put_proposed(&mut self, rows: usize) {
        self.proposed = rows;
    }

    /// The place of the last row, if the structure proposed as many as were requested. There may
    /// then be more. `keys` are those that the index was made with.
    pub(crate) fn last_of(&self, requested: usize, keys: &KeySchema) -> Option<RowPlace> {
        let begin = self.ends.iter().rev().nth(1).copied().unwrap_or(0);
        let last = self.ends.last().map(|end| &self.keys[begin..*end])?;
        (self.proposed >= requested).then(|| RowPlace::of(keys, last))
    }

    /// Lets the answer say where the next page begins.
    pub(crate) fn put_next(&mut self, next: Bytes) {
        self.next = Some(next);
    }

    /// Notes that the index lacks rows for want of room, so that the answer may lack some. The
    /// binary form does not tell.
    pub(crate) fn put_short(&mut self) {
        self.is_short = true;
    }

    /// Notes that a value has expired that decides about one of the rows, or is shown.
    pub(crate) fn mark_expired_value(&mut self) {
        self.is_in_doubt = true;
    }

    /// Whether a value has expired that decides about one of the rows, or is shown. Such a row has
    /// to be read again before anybody gets the answer.
    pub(crate) fn has_expired_value(&self) -> bool {
        self.is_in_doubt
    }

    /// The rows, found by this plan.
    #[must_use]
    pub(crate) fn found_by(self, plan: ExecutedPlan) -> RankedRows<'a> {
        RankedRows {
            plan: Some(plan),
            ..self
        }
    }

    /// The way in which the search was done.
    pub(crate) fn plan(&self) -> Option<&ExecutedPlan> {
        self.plan.as_ref()
    }

    /// Lets the answer tell how the index of that name was searched.
    pub(crate) fn explain(&mut self, index: &str) {
        self.debug = self.plan.map(|plan| SearchDebug {
            index: index.to_owned(),
            plan: plan.kind,
            admitted: plan.admitted,
            fresh: plan.fresh,
            walk_given_up: plan.walk_given_up,
        });
    }

    /// The answer with values of these columns next to the keys.
    #[must_use]
    pub(crate) fn returning(self, columns: Option<&'a [RequestedColumn]>) -> RankedRows<'a> {
        let rows = self.ends.capacity();
        let values = |column| ReturnedValues::with_capacity(column, rows);
        RankedRows {
            returned: columns.map(|columns| columns.iter().map(values).collect()),
            ..self
        }
    }

    /// The values next to the keys, of which each [row](RankedRows::push) needs one a column.
    pub(crate) fn returned(&mut self) -> &mut [ReturnedValues<'a>] {
        self.returned.as_deref_mut().unwrap_or_default()
    }

    /// Adds a row, which is no nearer than those before.
    pub(crate) fn push(&mut self, key: &[u8], scored: DistanceAndScore) {
        if self.keys.is_empty() {
            // The keys of a table mostly have similar lengths.
            let all = key.len() * self.scores.capacity();
            self.keys.reserve(all.min(KEYS_RESERVED_MAX));
        }
        self.keys.extend_from_slice(key);
        self.ends.push(self.keys.len());
        self.scores.push(scored);
    }

    /// Checks that the values next to the keys are no more than an answer may have.
    ///
    /// # Errors
    /// If they are more.
    pub(crate) fn check(&self) -> Result<(), TooManyBytes> {
        ReturnedValues::check(self.returned.as_deref().unwrap_or_default())
    }

    /// The bytes of the keys and of the values next to them.
    pub(crate) fn bytes(&self) -> usize {
        let values = self.returned.iter().flatten().map(ReturnedValues::bytes);
        self.keys.len() + values.sum::<usize>()
    }

    /// The keys and the values next to them as pieces of JSON: for each an object with an array for
    /// each column.
    ///
    /// # Errors
    /// If a key has no form in JSON.
    pub(crate) fn column_pieces(&self) -> serde_json::Result<ColumnPieces> {
        let returned = self.returned.as_deref().unwrap_or_default();
        Ok(ColumnPieces {
            primary_keys: to_raw_value(&JsonKeys(self))?,
            column_values: to_raw_value(&JsonColumnValues(returned))?,
        })
    }

    /// The rows, nearest first, each with the values that were requested.
    pub(crate) fn rows(&self) -> Vec<RankedRow<'_>> {
        let columns = self.returned.as_deref().unwrap_or_default();
        let mut columns: Vec<_> = columns.iter().map(ReturnedValues::iter).collect();
        let mut begin = 0;
        let rows = self.ends.iter().zip(&self.scores);
        let rows = rows.map(|(end, scored)| RankedRow {
            key: &self.keys[std::mem::replace(&mut begin, *end)..*end],
            scored: *scored,
            values: columns
                .iter_mut()
                .map(|values| values.next().flatten())
                .collect(),
        });
        rows.collect()
    }

    /// Writes the answer in the binary form.
    pub(crate) fn binary(&self) -> Bytes {
        let scores = self.scores.iter();
        let scores = scores.map(|scored| (scored.distance, scored.similarity));
        let columns = self.schema.columns();
        let names: usize = columns.map(|column| column.name.len()).sum();
        let returned = self.returned.as_deref().unwrap_or_default();
        let values: usize = returned.iter().map(ReturnedValues::bytes).sum();
        let bytes = self.keys.len() + names + values;
        let mut out = binary::AnswerWriter::new(scores, self.schema.len(), bytes);
        for (at, column) in self.schema.columns().enumerate() {
            out.column(&column.name, type_code(&column.cql_type), self.column(at));
        }
        for values in returned {
            let RequestedColumn { name, cql_type, .. } = values.column();
            out.returned_column(name, type_code(cql_type), values.iter());
        }
        out.finish()
    }

    /// The rows as a node in this process takes them, with the values of the columns of these
    /// names, in their order. The values of all keys share one piece of memory, and so do those of
    /// a column.
    pub(crate) fn into_neighbours(self, names: &[String]) -> NearestRows {
        let encoded = Bytes::from(self.keys);
        let mut begin = 0;
        let keys = self.ends.iter().map(|end| {
            let key = &encoded[std::mem::replace(&mut begin, *end)..*end];
            let mut values = Vec::with_capacity(self.schema.len());
            values.extend(
                EncodedValues::of(key).map(|value| KeyValue::Cql(encoded.slice_ref(value))),
            );
            values
        });
        let keys = keys.collect();
        let returned = self.returned.unwrap_or_default().into_iter();
        let returned = returned.map(|values| (values.column(), values.into_values()));
        let returned: Vec<(&RequestedColumn, Vec<Option<Bytes>>)> = returned.collect();
        let of_name = |name: &String| {
            let named = returned.iter().find(|(column, _)| column.name == *name);
            let values = named.into_iter().flat_map(|(_, values)| values);
            values
                .map(|value| value.clone().map(KeyValue::Cql))
                .collect()
        };
        NearestRows {
            keys,
            similarity_scores: self.scores.iter().map(|scored| scored.similarity).collect(),
            column_values: names.iter().map(of_name).collect(),
            is_short: self.is_short,
        }
    }

    /// The rows as a page of those that match words.
    pub(crate) fn into_page(self) -> MatchedRows {
        let next = self.next.clone();
        let NearestRows { keys, is_short, .. } = self.into_neighbours(&[]);
        MatchedRows {
            keys,
            next,
            is_short,
        }
    }

    /// The values of one column, as CQL serialises them.
    fn column(&self, at: usize) -> impl ExactSizeIterator<Item = &[u8]> + Clone {
        let mut begin = 0;
        self.ends.iter().map(move |end| {
            let key = &self.keys[std::mem::replace(&mut begin, *end)..*end];
            let mut values = EncodedValues::of(key);
            values.nth(at).expect("a key has a value for each column")
        })
    }
}

impl Serialize for RankedRows<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let more = [self.returned.is_some(), self.debug.is_some(), self.is_short];
        let fields = 3 + more.into_iter().filter(|is_there| *is_there).count();
        let mut answer = serializer.serialize_struct("AnnResponse", fields)?;
        answer.serialize_field("primary_keys", &JsonKeys(self))?;
        let distances = self.scores.iter().map(|scored| scored.distance);
        answer.serialize_field("distances", &JsonNumbers(distances))?;
        let similarities = self.scores.iter().map(|scored| scored.similarity);
        answer.serialize_field("similarity_scores", &JsonNumbers(similarities))?;
        if let Some(returned) = &self.returned {
            answer.serialize_field("column_values", &JsonColumnValues(returned))?;
        }
        if let Some(debug) = &self.debug {
            answer.serialize_field("debug", debug)?;
        }
        if self.is_short {
            answer.serialize_field("short", &true)?;
        }
        answer.end()
    }
}

/// Rows that were found by words. They serialise as a [`store_api::types::Bm25Response`].
pub(crate) struct JsonScoredRows<'r, 'a>(pub &'r RankedRows<'a>);

impl Serialize for JsonScoredRows<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let JsonScoredRows(rows) = self;
        let more = [rows.returned.is_some(), rows.debug.is_some(), rows.is_short];
        let fields = 2 + more.into_iter().filter(|is_there| *is_there).count();
        let mut answer = serializer.serialize_struct("Bm25Response", fields)?;
        answer.serialize_field("primary_keys", &JsonKeys(rows))?;
        let scores = rows.scores.iter().map(|scored| scored.similarity);
        answer.serialize_field("scores", &JsonNumbers(scores))?;
        if let Some(returned) = &rows.returned {
            answer.serialize_field("column_values", &JsonColumnValues(returned))?;
        }
        if let Some(debug) = &rows.debug {
            answer.serialize_field("debug", debug)?;
        }
        if rows.is_short {
            answer.serialize_field("short", &true)?;
        }
        answer.end()
    }
}

/// A page of rows that match words. It serialises as a [`store_api::types::MatchesResponse`].
pub(crate) struct JsonPage<'r, 'a>(pub &'r RankedRows<'a>);

impl Serialize for JsonPage<'_, '_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let JsonPage(rows) = self;
        let fields = 1 + usize::from(rows.next.is_some()) + usize::from(rows.is_short);
        let mut page = serializer.serialize_struct("MatchesResponse", fields)?;
        page.serialize_field("primary_keys", &JsonKeys(rows))?;
        if let Some(next) = &rows.next {
            page.serialize_field("next", &hex::write(next))?;
        }
        if rows.is_short {
            page.serialize_field("short", &true)?;
        }
        page.end()
    }
}

/// The keys as a JSON object, with an array for each column.
struct JsonKeys<'a>(&'a RankedRows<'a>);

impl Serialize for JsonKeys<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let JsonKeys(rows) = self;
        let mut map = serializer.serialize_map(Some(rows.schema.len()))?;
        for (at, column) in rows.schema.columns().enumerate() {
            map.serialize_entry(&column.name, &JsonKeyColumn { rows, at, column })?;
        }
        map.end()
    }
}

struct JsonKeyColumn<'a> {
    rows: &'a RankedRows<'a>,
    at: usize,
    column: &'a KeyColumn,
}

impl Serialize for JsonKeyColumn<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let values = self.rows.column(self.at);
        serializer.collect_seq(values.map(|value| JsonKeyValue {
            cql_type: &self.column.cql_type,
            value,
        }))
    }
}

struct JsonKeyValue<'a> {
    cql_type: &'a CqlType,
    value: &'a [u8],
}

impl Serialize for JsonKeyValue<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let json = to_key_json(self.cql_type, self.value).map_err(S::Error::custom)?;
        json.serialize(serializer)
    }
}

/// The values next to the keys as a JSON object, with an array for each column.
struct JsonColumnValues<'a>(&'a [ReturnedValues<'a>]);

impl Serialize for JsonColumnValues<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let JsonColumnValues(columns) = self;
        serializer.collect_map(columns.iter().map(|values| (&values.column().name, values)))
    }
}

struct JsonNumbers<I>(I);

impl<I: Iterator<Item = f32> + Clone> Serialize for JsonNumbers<I> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.clone())
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use serde_json::json;
    use store_api::types::AnnResponse;

    use super::super::returned::ValueOrigin;
    use super::*;

    fn column(name: &str, cql_type: CqlType) -> KeyColumn {
        KeyColumn {
            name: name.into(),
            cql_type,
        }
    }

    fn scored(distance: f32, similarity: f32) -> DistanceAndScore {
        DistanceAndScore {
            distance,
            similarity,
            measured: distance,
        }
    }

    #[test]
    fn both_forms_say_the_same() {
        let schema = KeySchema {
            partition: vec![column("pk", CqlType::Int)],
            clustering: vec![column("ck", CqlType::Text)],
        };
        let mut found = RankedRows::with_capacity(&schema, 2);
        let key = |number: u8, text: &'static [u8]| schema.encode([&[0, 0, 0, number], text]);
        found.push(key(7, b"").as_bytes(), scored(0.5, 0.75));
        found.push(key(8, b"abc").as_bytes(), scored(1.0, 0.5));
        let json = serde_json::to_string(&found).unwrap();
        assert_eq!(
            json,
            r#"{"primary_keys":{"pk":[7,8],"ck":["","abc"]},"distances":[0.5,1.0],"similarity_scores":[0.75,0.5]}"#
        );
        serde_json::from_str::<AnnResponse>(&json).expect("the shape that clients read");
        let rows = binary::AnswerRows::read(found.binary()).unwrap();
        assert_eq!(rows.distances, [0.5, 1.0]);
        assert_eq!(rows.similarity_scores, [0.75, 0.5]);
        let [pk, ck] = &rows.columns[..] else {
            panic!("two columns");
        };
        assert_eq!((pk.name.as_str(), pk.typ), ("pk", 9));
        assert_eq!(pk.values, [&[0, 0, 0, 7][..], &[0, 0, 0, 8]]);
        assert_eq!((ck.name.as_str(), ck.typ), ("ck", 13));
        assert_eq!(ck.values, ["", "abc"]);
    }

    #[test]
    fn rows_found_by_words_have_scores_and_pages_say_where_the_next_begins() {
        let schema = KeySchema {
            partition: vec![column("pk", CqlType::Int)],
            clustering: vec![],
        };
        let mut found = RankedRows::with_capacity(&schema, 1);
        let key = schema.encode([&[0, 0, 0, 7][..]]);
        found.push(key.as_bytes(), scored(-1.5, 1.5));
        let json = serde_json::to_string(&JsonScoredRows(&found)).unwrap();
        assert_eq!(json, r#"{"primary_keys":{"pk":[7]},"scores":[1.5]}"#);
        let page = |found: &RankedRows<'_>| serde_json::to_string(&JsonPage(found)).unwrap();
        assert_eq!(page(&found), r#"{"primary_keys":{"pk":[7]}}"#);
        found.put_proposed(2);
        let last = RowPlace::of(&schema, key.as_bytes());
        assert_eq!(found.last_of(2, &schema), Some(last));
        assert_eq!(found.last_of(3, &schema), None);
        found.put_next(Bytes::from_static(&[0, 9]));
        assert_eq!(page(&found), r#"{"primary_keys":{"pk":[7]},"next":"0009"}"#);
        let rows = found.into_page();
        assert_eq!(rows.next, Some(Bytes::from_static(&[0, 9])));
        assert_eq!(rows.keys.len(), 1);
    }

    #[test]
    fn an_answer_that_may_lack_rows_says_so() {
        let schema = KeySchema {
            partition: vec![column("pk", CqlType::Int)],
            clustering: vec![],
        };
        let mut found = RankedRows::with_capacity(&schema, 0);
        let json = |found: &RankedRows<'_>| serde_json::to_value(found).unwrap();
        assert_eq!(json(&found).get("short"), None);
        found.put_short();
        assert_eq!(json(&found)["short"], json!(true));
        let response: AnnResponse = serde_json::from_value(json(&found)).unwrap();
        assert!(response.short);
    }

    #[test]
    fn both_forms_have_values_next_to_the_keys() {
        let schema = KeySchema {
            partition: vec![column("pk", CqlType::Int)],
            clustering: vec![],
        };
        let returned = [RequestedColumn {
            name: "t".into(),
            cql_type: CqlType::Text,
            source: ValueOrigin::Indexed,
        }];
        let mut found = RankedRows::with_capacity(&schema, 2).returning(Some(&returned));
        for (number, value) in [(7, Some("x")), (8, None), (9, Some(""))] {
            let key = schema.encode([[0, 0, 0, number].as_slice()]);
            found.push(key.as_bytes(), scored(0.5, 0.75));
            let value = value.map(|value| Cow::Borrowed(value.as_bytes()));
            found.returned()[0].push(value);
        }
        let json = serde_json::to_string(&found).unwrap();
        let response: AnnResponse = serde_json::from_str(&json).unwrap();
        let values = response.column_values.unwrap();
        assert_eq!(
            serde_json::to_value(values).unwrap(),
            json!({"t": ["x", null, ""]})
        );
        let rows = binary::AnswerRows::read(found.binary()).unwrap();
        let [t] = &rows.returned[..] else {
            panic!("one column");
        };
        assert_eq!((t.name.as_str(), t.typ), ("t", 13));
        assert_eq!(t.values, [Some("x".into()), None, Some("".into())]);
        // An empty list is answered as such.
        let none = RankedRows::with_capacity(&schema, 0).returning(Some(&[]));
        let json = serde_json::to_string(&none).unwrap();
        assert!(json.ends_with(r#","column_values":{}}"#), "{json}");
    }

    #[test]
    fn a_long_key_takes_no_room_for_as_many_as_may_come() {
        let schema = KeySchema {
            partition: vec![column("pk", CqlType::Blob)],
            clustering: vec![],
        };
        let mut found = RankedRows::with_capacity(&schema, 100_000);
        let key = schema.encode([[7; 60_000].as_slice()]);
        found.push(key.as_bytes(), scored(0.5, 0.75));
        assert!(
            found.keys.capacity() <= 2 << 20,
            "{}",
            found.keys.capacity()
        );
    }

    #[test]
    fn a_key_without_a_json_form_fails_in_json_alone() {
        let schema = KeySchema {
            partition: vec![column("pk", CqlType::Double)],
            clustering: vec![],
        };
        let mut found = RankedRows::with_capacity(&schema, 1);
        let key = schema.encode([f64::NAN.to_be_bytes().as_slice()]);
        found.push(key.as_bytes(), scored(0.5, 0.75));
        let error = serde_json::to_string(&found).unwrap_err();
        assert_eq!(error.to_string(), "not a finite number");
        assert!(binary::AnswerRows::read(found.binary()).is_ok());
    }
}
