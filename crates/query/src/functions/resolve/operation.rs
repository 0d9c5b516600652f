//! Operators: arithmetic on numbers, texts put together, and times moved by durations.
//!
//! An operator is the call of a function, as in Cassandra, and has its overloads: each pair of
//! types of numbers, and more for `+` and `-`. A term within a term takes the type that is wanted
//! of it. So which types fit is found for all types at once, from the innermost term to the
//! outermost: trying the overloads for each term by itself would take time without bound.

use cql::ast::{ArithmeticOperation, NEGATION, Term};
use cql::error::CqlError;
use value::CqlType;

use super::{Assignability, is_of_receiver, natural_type, type_assignability};
use crate::functions::{CallArgument, FunctionBody, ScalarFunction, numbers};

static NUMBERS: [CqlType; 9] = [
    CqlType::Tinyint,
    CqlType::Smallint,
    CqlType::Int,
    CqlType::Bigint,
    CqlType::Float,
    CqlType::Double,
    CqlType::Decimal,
    CqlType::Varint,
    CqlType::Counter,
];

/// The types that are no numbers and can still be operands.
static OTHERS: [CqlType; 5] = [
    CqlType::Text,
    CqlType::Ascii,
    CqlType::Timestamp,
    CqlType::Date,
    CqlType::Duration,
];

/// How well an argument fits types. What is a call within it is resolved once, and not again for
/// each type that is tried.
pub(super) enum ArgumentFit<'a> {
    /// An argument that is no call.
    Plain(CallArgument<'a>),
    /// A call of a function, which has a type by itself if it is valid.
    Call(Option<CqlType>),
    /// An operator, with its fit to each of [`operand_types`].
    Operator(Vec<(&'static CqlType, Assignability)>),
}

/// The types of the operands and of the result.
struct OperatorSignature {
    left: CqlType,
    right: CqlType,
    result: CqlType,
}

/// The function of an operator, if `name` is one, with its types. `receiver` is the type that is
/// wanted, if it is known.
///
/// # Errors
/// If the operator does not work on such operands, or on several types that they may have.
pub(super) fn resolve(
    name: &str,
    arguments: &[CallArgument<'_>],
    receiver: Option<&CqlType>,
) -> Option<Result<ScalarFunction, CqlError>> {
    match (ArithmeticOperation::of_function(name), arguments) {
        (Some(operation), [left, right]) => Some(choose(operation, left, right, receiver).map(
            |signature| ScalarFunction {
                name: operation.function(),
                argument_types: vec![signature.left, signature.right],
                return_type: signature.result,
                is_foldable: true,
                body: FunctionBody::Operation(operation),
            },
        )),
        (None, [argument]) if name == NEGATION => Some(choose_negated(argument, receiver).map(
            |cql_type| ScalarFunction {
                name: NEGATION,
                argument_types: vec![cql_type.clone()],
                return_type: cql_type,
                is_foldable: true,
                body: FunctionBody::Negation,
            },
        )),
        _ => None,
    }
}

impl<'a> ArgumentFit<'a> {
    pub(super) fn of(argument: &CallArgument<'a>) -> ArgumentFit<'a> {
        let CallArgument::Term(term) = argument else {
            return ArgumentFit::Plain(*argument);
        };
        match term.without_parentheses() {
            Term::Function(call) if ArithmeticOperation::is_operator(&call.name) => {
                ArgumentFit::of_operator(&call.name, &call.arguments)
            }
            Term::Function(call) if !is_of_receiver(&call.name) => {
                ArgumentFit::Call(natural_type(term))
            }
            _ => ArgumentFit::Plain(*argument),
        }
    }

    fn of_operator(name: &str, arguments: &[Term]) -> ArgumentFit<'a> {
        let operands: Vec<ArgumentFit<'_>> = arguments
            .iter()
            .map(|term| ArgumentFit::of(&CallArgument::Term(term)))
            .collect();
        let has_marker = arguments.iter().any(is_marker);
        let fit = |wanted: &CqlType| {
            let result = match (ArithmeticOperation::of_function(name), &operands[..]) {
                (Some(operation), [left, right]) => {
                    let chosen = best(operation, left, right, has_marker, Some(wanted));
                    chosen.ok().map(|signature| signature.result)
                }
                (None, [operand]) => best_negated(operand, Some(wanted)).ok(),
                _ => None,
            };
            result.map_or(Assignability::No, |result| {
                type_assignability(&result, wanted)
            })
        };
        let fits = operand_types().map(|wanted| (wanted, fit(wanted)));
        ArgumentFit::Operator(fits.collect())
    }

    pub(super) fn fit(&self, wanted: &CqlType) -> Assignability {
        let fit = match self {
            ArgumentFit::Plain(argument) => argument.fits(wanted),
            ArgumentFit::Call(cql_type) => {
                cql_type.as_ref().map_or(Assignability::No, |cql_type| {
                    type_assignability(cql_type, wanted)
                })
            }
            ArgumentFit::Operator(fits) => {
                let known = fits.iter().find(|(known, _)| *known == wanted);
                known.map_or(Assignability::No, |(_, fit)| *fit)
            }
        };
        match fit {
            // What is read as a bigint is read as a counter, too.
            Assignability::No if *wanted == CqlType::Counter => {
                self.fit(&CqlType::Bigint).min(Assignability::Weak)
            }
            fit => fit,
        }
    }
}

/// All types of operands.
fn operand_types() -> impl Iterator<Item = &'static CqlType> {
    NUMBERS.iter().chain(OTHERS.iter())
}

/// Why none of the signatures is the one.
enum SignatureMismatch {
    None,
    Several,
}

fn choose(
    operation: ArithmeticOperation,
    left: &CallArgument<'_>,
    right: &CallArgument<'_>,
    receiver: Option<&CqlType>,
) -> Result<OperatorSignature, CqlError> {
    let has_marker = [left, right]
        .iter()
        .any(|argument| matches!(argument, CallArgument::Term(term) if is_marker(term)));
    let (left_fits, right_fits) = (ArgumentFit::of(left), ArgumentFit::of(right));
    best(operation, &left_fits, &right_fits, has_marker, receiver).map_err(|unfit| {
        let (left, right, symbol) = (left.text(), right.text(), operation.symbol());
        CqlError::invalid(match unfit {
            SignatureMismatch::None => {
                format!("the '{symbol}' operation is not supported between {left} and {right}")
            }
            SignatureMismatch::Several => format!(
                "Ambiguous '{symbol}' operation with args {left} and {right}: use type hint to \
                 disambiguate, example '(int) ?'"
            ),
        })
    })
}

/// The signature that fits exactly, or the only one that fits, or the one whose types are all the
/// wanted type.
fn best(
    operation: ArithmeticOperation,
    left: &ArgumentFit<'_>,
    right: &ArgumentFit<'_>,
    has_marker: bool,
    receiver: Option<&CqlType>,
) -> Result<OperatorSignature, SignatureMismatch> {
    let mut fitting = Vec::new();
    for signature in signatures(operation) {
        let result_fits = receiver.is_none_or(|wanted| {
            type_assignability(&signature.result, wanted) != Assignability::No
        });
        if !result_fits {
            continue;
        }
        match left.fit(&signature.left).min(right.fit(&signature.right)) {
            Assignability::Exact => return Ok(signature),
            Assignability::Weak => fitting.push(signature),
            Assignability::No => {}
        }
    }
    match fitting.len() {
        0 => Err(SignatureMismatch::None),
        1 => fitting.pop().ok_or(SignatureMismatch::None),
        _ if has_marker => Err(SignatureMismatch::Several),
        _ => fitting
            .into_iter()
            .find(|signature| {
                let types = [&signature.left, &signature.right, &signature.result];
                types.into_iter().all(|cql_type| Some(cql_type) == receiver)
            })
            .ok_or(SignatureMismatch::Several),
    }
}

fn choose_negated(
    argument: &CallArgument<'_>,
    receiver: Option<&CqlType>,
) -> Result<CqlType, CqlError> {
    best_negated(&ArgumentFit::of(argument), receiver).map_err(|unfit| {
        CqlError::invalid(match unfit {
            SignatureMismatch::Several => {
                "Ambiguous negation: use type casts to disambiguate".to_owned()
            }
            SignatureMismatch::None => format!(
                "Invalid call to function system._negate: {} is no number",
                argument.text()
            ),
        })
    })
}

fn best_negated(
    operand: &ArgumentFit<'_>,
    receiver: Option<&CqlType>,
) -> Result<CqlType, SignatureMismatch> {
    let result_fits = |cql_type: &&CqlType| {
        receiver.is_none_or(|wanted| type_assignability(cql_type, wanted) != Assignability::No)
    };
    let fitting: Vec<&CqlType> = NUMBERS
        .iter()
        .filter(result_fits)
        .filter(|cql_type| operand.fit(cql_type) != Assignability::No)
        .collect();
    let exact = fitting
        .iter()
        .find(|cql_type| operand.fit(cql_type) == Assignability::Exact);
    match (exact, &fitting[..]) {
        (Some(only), _) | (None, [only]) => Ok(CqlType::clone(only)),
        (None, []) => Err(SignatureMismatch::None),
        (None, _) => Err(SignatureMismatch::Several),
    }
}

fn signatures(operation: ArithmeticOperation) -> impl Iterator<Item = OperatorSignature> {
    let numbers = NUMBERS.iter().flat_map(|left| {
        NUMBERS.iter().map(move |right| OperatorSignature {
            left: left.clone(),
            right: right.clone(),
            result: numbers::result_type(left, right),
        })
    });
    let is_addition = operation == ArithmeticOperation::Add;
    let is_linear = is_addition || operation == ArithmeticOperation::Subtract;
    let texts = [CqlType::Text, CqlType::Ascii];
    let pairs = texts.clone().into_iter().flat_map(move |left| {
        texts
            .clone()
            .into_iter()
            .map(move |right| OperatorSignature {
                result: match (&left, &right) {
                    (CqlType::Ascii, CqlType::Ascii) => CqlType::Ascii,
                    _ => CqlType::Text,
                },
                left: left.clone(),
                right,
            })
    });
    let moved = [CqlType::Timestamp, CqlType::Date].into_iter();
    let moved = moved.map(|cql_type| OperatorSignature {
        left: cql_type.clone(),
        right: CqlType::Duration,
        result: cql_type,
    });
    numbers
        .chain(pairs.filter(move |_| is_addition))
        .chain(moved.filter(move |_| is_linear))
}

fn is_marker(term: &Term) -> bool {
    matches!(term, Term::Marker(_))
}

#[cfg(test)]
mod tests {
    use cql::ast::{Operand, Statement};
    use value::Literal;

    use super::*;

    fn integer(digits: &str) -> Term {
        Term::Literal(Literal::Integer(digits.to_owned()))
    }

    fn result_of(term: &Term, receiver: Option<&CqlType>) -> Result<CqlType, CqlError> {
        let Term::Function(call) = term else {
            panic!("no operator");
        };
        let arguments: Vec<CallArgument<'_>> =
            call.arguments.iter().map(CallArgument::Term).collect();
        let resolved = resolve(&call.name, &arguments, receiver).unwrap();
        resolved.map(|function| function.return_type)
    }

    #[test]
    fn literals_take_the_type_that_is_wanted() {
        let sum = Term::operated(ArithmeticOperation::Add, integer("1"), integer("2"));
        assert_eq!(result_of(&sum, None).unwrap(), CqlType::Int);
        assert_eq!(
            result_of(&sum, Some(&CqlType::Float)).unwrap(),
            CqlType::Float
        );
        assert!(result_of(&sum, Some(&CqlType::Text)).is_err());
        let nested = Term::operated(ArithmeticOperation::Multiply, sum, integer("3"));
        assert_eq!(
            result_of(&nested, Some(&CqlType::Decimal)).unwrap(),
            CqlType::Decimal
        );
    }

    #[test]
    fn deep_terms_are_resolved_quickly() {
        let mut text = "toDate(now())".to_owned();
        for _ in 0..20 {
            text = format!("toDate(toTimestamp({text} + 1d) - 1d)");
        }
        let parsed = cql::parser::parse_statement(&format!("INSERT INTO t (a) VALUES ({text})"));
        let Statement::Insert(insert) = parsed.unwrap().statement else {
            panic!("no INSERT");
        };
        let cql::ast::InsertValues::Columns { terms, .. } = insert.values else {
            panic!("no values");
        };
        assert_eq!(natural_type(&terms[0]), Some(CqlType::Date));
    }
}
