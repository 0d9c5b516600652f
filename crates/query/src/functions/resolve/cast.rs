//! Casts as functions, `cast_as_int` and others, which `CAST(term AS type)` calls.

use cql::error::CqlError;
use value::CqlType;

use super::operation::ArgumentFit;
use super::{Assignability, no_overload, of_several, type_assignability};
use crate::functions::{CallArgument, FunctionBody, ScalarFunction, TypeCast};

/// The functions, each with the type to which it casts.
const CASTS: [(&str, CqlType); 12] = [
    ("cast_as_ascii", CqlType::Ascii),
    ("cast_as_bigint", CqlType::Bigint),
    ("cast_as_date", CqlType::Date),
    ("cast_as_decimal", CqlType::Decimal),
    ("cast_as_double", CqlType::Double),
    ("cast_as_float", CqlType::Float),
    ("cast_as_int", CqlType::Int),
    ("cast_as_smallint", CqlType::Smallint),
    ("cast_as_text", CqlType::Text),
    ("cast_as_timestamp", CqlType::Timestamp),
    ("cast_as_tinyint", CqlType::Tinyint),
    ("cast_as_varint", CqlType::Varint),
];

/// The types from which there are casts.
const FROM: [CqlType; 17] = [
    CqlType::Ascii,
    CqlType::Bigint,
    CqlType::Boolean,
    CqlType::Counter,
    CqlType::Date,
    CqlType::Decimal,
    CqlType::Double,
    CqlType::Float,
    CqlType::Inet,
    CqlType::Int,
    CqlType::Smallint,
    CqlType::Time,
    CqlType::Timestamp,
    CqlType::Timeuuid,
    CqlType::Tinyint,
    CqlType::Uuid,
    CqlType::Varint,
];

/// The function, if `name` is one, from the type that the argument has or takes.
///
/// # Errors
/// Not one argument, one for which there is no cast, one that may be of several types, and a
/// result of another type than `receiver`.
pub(super) fn resolve(
    name: &str,
    arguments: &[CallArgument<'_>],
    receiver: Option<&CqlType>,
) -> Option<Result<ScalarFunction, CqlError>> {
    let (name, to) = CASTS.iter().find(|(cast, _)| *cast == name)?;
    let result_fits =
        receiver.is_none_or(|receiver| type_assignability(to, receiver) != Assignability::No);
    let argument = match arguments {
        [argument] if result_fits => argument,
        _ => return Some(Err(no_overload(name, &signatures(name, to, &all(to))))),
    };
    Some(from_type(name, to, argument).map(|from| ScalarFunction {
        name,
        argument_types: vec![from],
        return_type: to.clone(),
        is_foldable: true,
        body: FunctionBody::Cast,
    }))
}

/// The one type that fits exactly, else the only one that fits at all.
fn from_type(name: &str, to: &CqlType, argument: &CallArgument<'_>) -> Result<CqlType, CqlError> {
    let others = all(to);
    let argument = ArgumentFit::of(argument);
    let fits = |from: &&CqlType| argument.fit(from);
    let mut exact = others.iter().chain([to]);
    if let Some(exact) = exact.find(|from| fits(from) == Assignability::Exact) {
        return Ok(exact.clone());
    }
    let fitting: Vec<CqlType> = (others.iter())
        .filter(|from| fits(from) != Assignability::No)
        .cloned()
        .collect();
    match fitting.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(no_overload(name, &signatures(name, to, &others))),
        several => Err(of_several(name, &signatures(name, to, several))),
    }
}

/// The types from which there is a cast to this one, without itself.
fn all(to: &CqlType) -> Vec<CqlType> {
    FROM.iter()
        .filter(|from| *from != to && TypeCast::new(from, to).is_ok())
        .cloned()
        .collect()
}

fn signatures(name: &str, to: &CqlType, from: &[CqlType]) -> String {
    let texts: Vec<String> = from
        .iter()
        .map(|from| format!("system.{name} : ({from}) -> {to}"))
        .collect();
    texts.join(", ")
}

#[cfg(test)]
mod tests {
    use cql::ast::{FunctionCall, Term};
    use value::Literal;

    use super::*;

    fn cast(to: &str, term: Term) -> Term {
        Term::Function(FunctionCall {
            keyspace: None,
            name: format!("cast_as_{to}"),
            arguments: vec![term],
        })
    }

    fn resolved(name: &str, argument: &Term) -> Result<ScalarFunction, CqlError> {
        resolve(name, &[CallArgument::Term(argument)], None).expect("a cast")
    }

    #[test]
    fn an_argument_has_one_type() {
        let number = |digits: &str| Term::Literal(Literal::Float(digits.to_owned()));
        let of_double = resolved("cast_as_int", &number("1.5")).unwrap();
        assert_eq!(of_double.argument_types, [CqlType::Double]);
        let whole = Term::Literal(Literal::Integer("1".to_owned()));
        let of_itself = resolved("cast_as_int", &whole).unwrap();
        assert_eq!(of_itself.argument_types, [CqlType::Int]);
        let refused = resolved("cast_as_int", &Term::Null).unwrap_err().message;
        assert!(refused.starts_with("Ambiguous call"), "{refused}");
        let text = Term::Literal(Literal::String("4".to_owned()));
        let refused = resolved("cast_as_int", &text).unwrap_err().message;
        assert!(
            refused.contains("none of its type signatures match"),
            "{refused}"
        );
        assert!(resolve("cast_as_blob", &[], None).is_none());
    }

    /// If each cast resolved its argument again for each type, this would take for ever.
    #[test]
    fn casts_in_casts_are_resolved_once() {
        let mut term = Term::Literal(Literal::Float("2.5".to_owned()));
        for level in 0..40 {
            term = cast(if level % 2 == 0 { "float" } else { "int" }, term);
        }
        let outermost = resolved("cast_as_text", &term).unwrap();
        assert_eq!(outermost.argument_types, [CqlType::Int]);
    }
}
