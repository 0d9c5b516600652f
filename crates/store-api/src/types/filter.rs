//! Restrictions that come with a search (contract, section 1.7).

use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::ToSchema;

/// A conjunction of restrictions.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// The restrictions, which must all hold. An empty list restricts nothing.
    pub restrictions: Vec<Restriction>,
    /// Whether the user said ALLOW FILTERING.
    #[serde(default)]
    pub allow_filtering: bool,
}

/// One comparison of a column, or lexicographically of several, with constants.
///
/// The forms from `CONTAINS` on are no part of the contract: only nodes and gateways of Annulus use
/// them. Those of a token name all columns of the partition key.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(tag = "type", deny_unknown_fields)]
#[allow(missing_docs, reason = "a variant's operator says what it is")]
pub enum Restriction {
    #[serde(rename = "==")]
    Eq { lhs: String, rhs: Value },
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
}
