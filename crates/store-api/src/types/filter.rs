//! Restrictions that come with a search (contract, section 1.7).

use std::borrow::Cow;
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value};
use utoipa::openapi::RefOr;
use utoipa::openapi::schema::Schema;
use utoipa::{PartialSchema, ToSchema};

/// A conjunction of restrictions, or a condition that is made of restrictions in any way.
///
/// In JSON the condition takes the place of the restrictions: `and`, `or` or `not`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "FilterForm", into = "FilterForm")]
pub struct Filter {
    /// The restrictions, which must all hold. An empty list restricts nothing.
    pub restrictions: Vec<Restriction>,
    /// The condition that must hold in addition. JSON has it only without restrictions.
    pub condition: Option<FilterNode>,
    /// Whether the user said ALLOW FILTERING.
    pub allow_filtering: bool,
}

/// A condition that is made of restrictions. In JSON it is `{"and": [..]}`, `{"or": [..]}`,
/// `{"not": {..}}` or a restriction.
///
/// A row without a value in a restricted column satisfies neither the restriction nor its negation.
/// No part of this is in the contract.
#[derive(Clone, Debug, PartialEq)]
pub enum FilterNode {
    /// All of these must hold.
    And(Vec<FilterNode>),
    /// One of these must hold.
    Or(Vec<FilterNode>),
    /// This must not hold.
    Not(Box<FilterNode>),
    /// A restriction.
    Leaf(Restriction),
}

/// The form of a filter in JSON, which has just one of all but the last.
#[derive(Clone, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FilterForm {
    /// The restrictions, which must all hold. An empty list restricts nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restrictions: Option<Vec<Restriction>>,
    /// Whether the user said ALLOW FILTERING.
    #[serde(default)]
    allow_filtering: bool,
    /// In place of `restrictions`: conditions that must all hold, each a `Restriction`, or an
    /// object with `and`, `or` or `not`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    and: Option<Vec<FilterNode>>,
    /// In place of `restrictions`: conditions of which one must hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Vec<Object>>)]
    or: Option<Vec<FilterNode>>,
    /// In place of `restrictions`: a condition that must not hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    not: Option<FilterNode>,
}

impl TryFrom<FilterForm> for Filter {
    type Error = String;

    fn try_from(form: FilterForm) -> Result<Filter, String> {
        let condition = match (form.and, form.or, form.not) {
            (None, None, None) => None,
            (Some(parts), None, None) => Some(FilterNode::And(parts)),
            (None, Some(parts), None) => Some(FilterNode::Or(parts)),
            (None, None, Some(inner)) => Some(FilterNode::Not(Box::new(inner))),
            _ => return Err(ONE_OF.to_owned()),
        };
        match (&form.restrictions, &condition) {
            (Some(_), Some(_)) => Err(ONE_OF.to_owned()),
            (None, None) => Err("missing field `restrictions`".to_owned()),
            _ => Ok(Filter {
                restrictions: form.restrictions.unwrap_or_default(),
                condition,
                allow_filtering: form.allow_filtering,
            }),
        }
    }
}

/// The error for an object that says several things.
const ONE_OF: &str =
    "a filter has one of `restrictions`, `and`, `or` and `not`: put several into an `and`";

impl From<Filter> for FilterForm {
    fn from(filter: Filter) -> FilterForm {
        let Filter {
            restrictions,
            condition,
            allow_filtering,
        } = filter;
        let mut form = FilterForm {
            restrictions: None,
            allow_filtering,
            and: None,
            or: None,
            not: None,
        };
        match condition {
            None => form.restrictions = Some(restrictions),
            Some(condition) if !restrictions.is_empty() => {
                let restrictions = restrictions.into_iter().map(FilterNode::Leaf);
                form.and = Some(restrictions.chain([condition]).collect());
            }
            Some(FilterNode::And(parts)) => form.and = Some(parts),
            Some(FilterNode::Or(parts)) => form.or = Some(parts),
            Some(FilterNode::Not(inner)) => form.not = Some(*inner),
            Some(leaf @ FilterNode::Leaf(_)) => form.and = Some(vec![leaf]),
        }
        form
    }
}

impl PartialSchema for Filter {
    fn schema() -> RefOr<Schema> {
        FilterForm::schema()
    }
}

impl ToSchema for Filter {
    fn name() -> Cow<'static, str> {
        Cow::Borrowed("Filter")
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        FilterForm::schemas(schemas);
    }
}

impl Serialize for FilterNode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            FilterNode::And(parts) => serializer.collect_map([("and", parts)]),
            FilterNode::Or(parts) => serializer.collect_map([("or", parts)]),
            FilterNode::Not(inner) => serializer.collect_map([("not", inner)]),
            FilterNode::Leaf(restriction) => restriction.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for FilterNode {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<FilterNode, D::Error> {
        deserializer.deserialize_map(FilterNodeVisitor)
    }
}

struct FilterNodeVisitor;

impl<'de> Visitor<'de> for FilterNodeVisitor {
    type Value = FilterNode;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a restriction, or an object with `and`, `or` or `not`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<FilterNode, A::Error> {
        let mut node = None;
        let mut leaf = Map::new();
        while let Some(name) = fields.next_key::<String>()? {
            let made = match name.as_str() {
                "and" => FilterNode::And(fields.next_value()?),
                "or" => FilterNode::Or(fields.next_value()?),
                "not" => FilterNode::Not(Box::new(fields.next_value()?)),
                _ => {
                    let value: Value = fields.next_value()?;
                    if leaf.contains_key(&name) {
                        return Err(A::Error::custom(format!("duplicate field `{name}`")));
                    }
                    leaf.insert(name, value);
                    continue;
                }
            };
            if node.replace(made).is_some() {
                return Err(A::Error::custom(ONE_OF));
            }
        }
        match node {
            None => Restriction::deserialize(Value::Object(leaf))
                .map(FilterNode::Leaf)
                .map_err(A::Error::custom),
            Some(node) => match leaf.keys().next() {
                None => Ok(node),
                Some(name) => Err(A::Error::custom(format!(
                    "unknown field `{name}` next to `and`, `or` or `not`"
                ))),
            },
        }
    }
}

impl FilterNode {
    /// The restrictions of the condition, in the order in which they stand.
    pub fn restrictions(&self) -> Vec<&Restriction> {
        match self {
            FilterNode::And(parts) | FilterNode::Or(parts) => {
                parts.iter().flat_map(FilterNode::restrictions).collect()
            }
            FilterNode::Not(inner) => inner.restrictions(),
            FilterNode::Leaf(restriction) => vec![restriction],
        }
    }

    /// The restrictions that must all hold for the condition to hold. It may need more.
    pub fn conjuncts(&self) -> Vec<&Restriction> {
        match self {
            FilterNode::And(parts) => parts.iter().flat_map(FilterNode::conjuncts).collect(),
            FilterNode::Leaf(restriction) => vec![restriction],
            FilterNode::Or(_) | FilterNode::Not(_) => Vec::new(),
        }
    }
}

impl Filter {
    /// All restrictions, wherever they stand.
    pub fn all_restrictions(&self) -> impl Iterator<Item = &Restriction> {
        let condition = self.condition.iter().flat_map(FilterNode::restrictions);
        self.restrictions.iter().chain(condition)
    }

    /// The restrictions that must all hold for the filter to hold. It may need more.
    pub fn conjuncts(&self) -> impl Iterator<Item = &Restriction> {
        let condition = self.condition.iter().flat_map(FilterNode::conjuncts);
        self.restrictions.iter().chain(condition)
    }
}

/// One comparison of a column, or lexicographically of several, with constants.
///
/// `!=` and the forms from `CONTAINS` on are no part of the contract: only nodes and gateways of
/// Annulus use them, and users of conditions. Those of a token name all columns of the partition
/// key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", deny_unknown_fields)]
#[allow(missing_docs, reason = "a variant's operator says what it is")]
pub enum Restriction {
    #[serde(rename = "==")]
    Eq { lhs: String, rhs: Value },
    #[serde(rename = "!=")]
    Ne { lhs: String, rhs: Value },
    #[serde(rename = "<")]
    Lt { lhs: String, rhs: Value },
    #[serde(rename = "<=")]
    Le { lhs: String, rhs: Value },
    #[serde(rename = ">")]
    Gt { lhs: String, rhs: Value },
    #[serde(rename = ">=")]
    Ge { lhs: String, rhs: Value },
    #[serde(rename = "IN")]
    In { lhs: String, rhs: Vec<Value> },
    #[serde(rename = "()==()")]
    EqTuple { lhs: Vec<String>, rhs: Vec<Value> },
    #[serde(rename = "()<()")]
    LtTuple { lhs: Vec<String>, rhs: Vec<Value> },
    #[serde(rename = "()<=()")]
    LeTuple { lhs: Vec<String>, rhs: Vec<Value> },
    #[serde(rename = "()>()")]
    GtTuple { lhs: Vec<String>, rhs: Vec<Value> },
    #[serde(rename = "()>=()")]
    GeTuple { lhs: Vec<String>, rhs: Vec<Value> },
    #[serde(rename = "()IN()")]
    InTuple {
        lhs: Vec<String>,
        rhs: Vec<Vec<Value>>,
    },
    #[serde(rename = "CONTAINS")]
    Contains { lhs: String, rhs: Value },
    #[serde(rename = "CONTAINS KEY")]
    ContainsKey { lhs: String, rhs: Value },
    /// The entry of a map, `lhs[key] = rhs`.
    #[serde(rename = "[]==")]
    Entry { lhs: String, key: Value, rhs: Value },
    #[serde(rename = "TOKEN==")]
    TokenEq { lhs: Vec<String>, rhs: i64 },
    #[serde(rename = "TOKEN<")]
    TokenLt { lhs: Vec<String>, rhs: i64 },
    #[serde(rename = "TOKEN<=")]
    TokenLe { lhs: Vec<String>, rhs: i64 },
    #[serde(rename = "TOKEN>")]
    TokenGt { lhs: Vec<String>, rhs: i64 },
    #[serde(rename = "TOKEN>=")]
    TokenGe { lhs: Vec<String>, rhs: i64 },
    /// The text of column `lhs` matches the query `rhs`, which a full-text index on it answers.
    #[serde(rename = "BM25")]
    Bm25 { lhs: String, rhs: String },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_what_a_database_sends() {
        let filter: Filter = serde_json::from_str(
            r#"{"restrictions":[{"type":"IN","lhs":"pk1","rhs":[5,6]},
                {"type":"()IN()","lhs":["a","b"],"rhs":[[1,"x"],[2,"y"]]}]}"#,
        )
        .unwrap();
        assert!(!filter.allow_filtering);
        assert_eq!(
            filter.restrictions[0],
            Restriction::In {
                lhs: "pk1".into(),
                rhs: vec![5.into(), 6.into()]
            }
        );
        assert!(
            matches!(&filter.restrictions[1], Restriction::InTuple { rhs, .. } if rhs.len() == 2)
        );
        let beyond = [
            (
                r#"{"type":"[]==","lhs":"m","key":"k","rhs":1}"#,
                Restriction::Entry {
                    lhs: "m".into(),
                    key: "k".into(),
                    rhs: 1.into(),
                },
            ),
            (
                r#"{"type":"TOKEN<=","lhs":["p"],"rhs":-9223372036854775808}"#,
                Restriction::TokenLe {
                    lhs: vec!["p".into()],
                    rhs: i64::MIN,
                },
            ),
            (
                r#"{"type":"BM25","lhs":"body","rhs":"quick fox"}"#,
                Restriction::Bm25 {
                    lhs: "body".into(),
                    rhs: "quick fox".into(),
                },
            ),
        ];
        for (text, restriction) in beyond {
            assert_eq!(
                serde_json::from_str::<Restriction>(text).unwrap(),
                restriction
            );
            assert_eq!(serde_json::to_string(&restriction).unwrap(), text);
        }
        assert!(
            serde_json::from_str::<Restriction>(r#"{"type":"LIKE","lhs":"a","rhs":"b"}"#).is_err()
        );
    }

    #[test]
    fn conditions_stand_in_place_of_restrictions() {
        for text in [
            r#"{"allow_filtering":true,"or":[{"type":"==","lhs":"a","rhs":1},{"and":[{"type":"!=","lhs":"b","rhs":2},{"not":{"type":"BM25","lhs":"t","rhs":"fox"}}]}]}"#,
            r#"{"allow_filtering":false,"and":[]}"#,
            r#"{"allow_filtering":false,"not":{"or":[{"type":"<","lhs":"a","rhs":1}]}}"#,
            r#"{"restrictions":[],"allow_filtering":true}"#,
        ] {
            let filter: Filter = serde_json::from_str(text).unwrap();
            assert_eq!(serde_json::to_string(&filter).unwrap(), text);
        }
        for (text, named) in [
            ("{}", "restrictions"),
            (r#"{"restrictions":[],"and":[]}"#, "one of"),
            (r#"{"or":[],"and":[]}"#, "one of"),
            (r#"{"and":[{"or":[],"and":[]}]}"#, "one of"),
            (r#"{"and":[{"or":[],"lhs":"a"}]}"#, "`lhs`"),
            (
                r#"{"and":[{"type":"==","lhs":"a","lhs":"b","rhs":1}]}"#,
                "duplicate",
            ),
            (r#"{"and":[{"type":"==","rhs":1}]}"#, "lhs"),
            (r#"{"not":[]}"#, "`not`"),
            (r#"{"xor":[]}"#, "xor"),
        ] {
            let error = serde_json::from_str::<Filter>(text).unwrap_err();
            assert!(error.to_string().contains(named), "{text}: {error}");
        }
    }

    #[test]
    fn both_kinds_together_are_written_as_one_condition() {
        let equal = |lhs: &str| Restriction::Eq {
            lhs: lhs.to_owned(),
            rhs: 1.into(),
        };
        let filter = Filter {
            restrictions: vec![equal("a")],
            condition: Some(FilterNode::Not(Box::new(FilterNode::Leaf(equal("b"))))),
            allow_filtering: true,
        };
        assert_eq!(filter.all_restrictions().count(), 2);
        assert_eq!(filter.conjuncts().count(), 1);
        let text = serde_json::to_string(&filter).unwrap();
        let read: Filter = serde_json::from_str(&text).unwrap();
        assert_eq!(read.all_restrictions().count(), 2);
        assert_eq!(read.conjuncts().count(), 1);
    }
}
