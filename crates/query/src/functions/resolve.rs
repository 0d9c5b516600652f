//! Finds the function that a call means.

mod assign;
mod cast;
mod generic;
mod operation;

pub use assign::{
    Assignability, assignability, literal_assignability, natural_type, own_type, type_assignability,
};
use cql::ast::Term;
use cql::error::CqlError;
use operation::ArgumentFit;
use value::{CqlType, Literal};

use super::table::{FunctionDeclaration, FunctionSignature, overloads};
use super::{CallArgument, ScalarFunction, astra, term_excerpt};

/// Finds the function that a call means, with its types.
///
/// `keyspace` is the keyspace in the call (`system.now()`). `receiver` is the type that the result
/// should have, if it is known.
///
/// # Errors
/// The function is unknown, the number or types of the arguments are wrong, or several functions
/// fit the call.
pub fn resolve(
    keyspace: Option<&str>,
    name: &str,
    arguments: &[CallArgument<'_>],
    receiver: Option<&CqlType>,
) -> Result<ScalarFunction, CqlError> {
    if let Some(keyspace) = keyspace.filter(|keyspace| *keyspace != "system") {
        return Err(CqlError::invalid(format!(
            "Unknown function '{keyspace}.{name}'"
        )));
    }
    if let Some(resolved) = operation::resolve(name, arguments, receiver) {
        return resolved;
    }
    if let Some(resolved) = generic::resolve(name, arguments) {
        return resolved;
    }
    if let Some(resolved) = cast::resolve(name, arguments, receiver) {
        return resolved;
    }
    let candidates: Vec<&'static FunctionDeclaration> = overloads(name).collect();
    match candidates.as_slice() {
        [] => Err(unknown(name)),
        [only] => match &only.signature {
            FunctionSignature::FloatVectors => of_vectors(only, arguments),
            FunctionSignature::Any => of_any(only, arguments),
            FunctionSignature::Receiver => of_receiver(only, arguments, receiver),
            FunctionSignature::Fixed {
                arguments: types, ..
            } => {
                check(only.name, types, arguments)?;
                Ok(settle(only))
            }
        },
        several => choose(several, arguments, receiver).map(settle),
    }
}

fn unknown(name: &str) -> CqlError {
    if let Some(refused) = astra::refused(name) {
        return refused;
    }
    CqlError::invalid(match name {
        "count" | "countrows" | "min" | "max" | "sum" | "avg" => {
            format!("aggregate function '{name}' is not supported here")
        }
        "token" => {
            "the token function is supported only where a statement has one table".to_owned()
        }
        _ => format!("Unknown function {name} called"),
    })
}

/// The function of a declaration. Only the types of a fixed signature are set.
fn settle(declaration: &'static FunctionDeclaration) -> ScalarFunction {
    let (argument_types, return_type) = match &declaration.signature {
        FunctionSignature::Fixed { arguments, result } => (arguments.to_vec(), result.clone()),
        FunctionSignature::FloatVectors => (Vec::new(), CqlType::Float),
        FunctionSignature::Any => (Vec::new(), CqlType::Text),
        FunctionSignature::Receiver => (vec![CqlType::Text], CqlType::Text),
    };
    ScalarFunction {
        name: declaration.name,
        argument_types,
        return_type,
        is_foldable: declaration.is_foldable,
        body: declaration.body,
    }
}

/// Checks the arguments against the signature of a function that has only one.
pub(super) fn check(
    name: &str,
    types: &[CqlType],
    arguments: &[CallArgument<'_>],
) -> Result<(), CqlError> {
    check_count(name, types.len(), arguments.len())?;
    for (index, (cql_type, argument)) in types.iter().zip(arguments).enumerate() {
        check_argument(name, index, cql_type, argument)?;
    }
    Ok(())
}

fn check_argument(
    name: &str,
    index: usize,
    cql_type: &CqlType,
    argument: &CallArgument<'_>,
) -> Result<(), CqlError> {
    match argument.fits(cql_type) {
        Assignability::No => Err(CqlError::invalid(format!(
            "Type error: {} cannot be passed as argument {index} of function system.{name} of type {cql_type}",
            argument.text()
        ))),
        _ => Ok(()),
    }
}

fn check_count(name: &str, required: usize, provided: usize) -> Result<(), CqlError> {
    if required == provided {
        Ok(())
    } else {
        Err(CqlError::invalid(format!(
            "Invalid number of arguments in call to function system.{name}: {required} required but {provided} provided"
        )))
    }
}

/// Chooses among overloads: the one whose types fit exactly, else the only one that fits at all.
fn choose(
    candidates: &[&'static FunctionDeclaration],
    arguments: &[CallArgument<'_>],
    receiver: Option<&CqlType>,
) -> Result<&'static FunctionDeclaration, CqlError> {
    let mut fitting = Vec::new();
    let fits: Vec<ArgumentFit<'_>> = arguments.iter().map(ArgumentFit::of).collect();
    for declaration in candidates {
        let FunctionSignature::Fixed {
            arguments: types,
            result,
        } = &declaration.signature
        else {
            continue;
        };
        // The result need not fit exactly: a timestamp is read as a bigint and a bigint as a
        // timestamp, for example.
        let result_fits = receiver
            .is_none_or(|receiver| type_assignability(result, receiver) != Assignability::No);
        if !result_fits || types.len() != arguments.len() {
            continue;
        }
        let worst = types
            .iter()
            .zip(&fits)
            .map(|(cql_type, argument)| argument.fit(cql_type))
            .min()
            .unwrap_or(Assignability::Exact);
        match worst {
            Assignability::Exact => return Ok(declaration),
            Assignability::Weak => fitting.push(*declaration),
            Assignability::No => {}
        }
    }
    match fitting.as_slice() {
        [only] => Ok(only),
        [] => Err(no_overload(candidates[0].name, &signatures(candidates))),
        several => Err(of_several(candidates[0].name, &signatures(several))),
    }
}

fn no_overload(name: &str, signatures: &str) -> CqlError {
    CqlError::invalid(format!(
        "Invalid call to function system.{name}, none of its type signatures match (known type signatures: {signatures})"
    ))
}

fn of_several(name: &str, signatures: &str) -> CqlError {
    CqlError::invalid(format!(
        "Ambiguous call to function system.{name} (can be matched by following signatures: {signatures}): use type casts to disambiguate"
    ))
}

fn signatures(declarations: &[&FunctionDeclaration]) -> String {
    let texts: Vec<String> = declarations
        .iter()
        .map(|declaration| match &declaration.signature {
            FunctionSignature::Fixed { arguments, result } => {
                let types: Vec<String> = arguments.iter().map(CqlType::to_string).collect();
                format!(
                    "system.{} : ({}) -> {result}",
                    declaration.name,
                    types.join(", ")
                )
            }
            FunctionSignature::FloatVectors => format!(
                "system.{} : (vector<float, n>, vector<float, n>) -> float",
                declaration.name
            ),
            FunctionSignature::Any => format!("system.{} : (any) -> text", declaration.name),
            FunctionSignature::Receiver => format!("system.{} : (text) -> any", declaration.name),
        })
        .collect();
    texts.join(", ")
}

/// The parameters of a similarity function, as Cassandra's errors have them.
const FLOAT_VECTORS: &str = "(vector<float, n>, vector<float, n>)";

/// Settles the dimension of a similarity function: the dimension of an argument with a known type,
/// or the length of a literal.
fn of_vectors(
    declaration: &'static FunctionDeclaration,
    arguments: &[CallArgument<'_>],
) -> Result<ScalarFunction, CqlError> {
    let name = declaration.name;
    if arguments.len() != 2 {
        return Err(CqlError::invalid(format!(
            "Invalid number of arguments for function system.{name}{FLOAT_VECTORS}"
        )));
    }
    let mut settled: Option<u16> = None;
    for argument in arguments {
        let Some(dimensions) = argument.dimensions(name)? else {
            continue;
        };
        match settled {
            Some(other) if other != dimensions => {
                return Err(CqlError::invalid(format!(
                    "All arguments must have the same vector dimensions, but found vector<float, {other}> and vector<float, {dimensions}>"
                )));
            }
            _ => settled = Some(dimensions),
        }
    }
    let Some(dimensions) = settled else {
        return Err(no_type(&arguments[0], &format!("{name}{FLOAT_VECTORS}")));
    };
    let cql_type = CqlType::Vector {
        element: Box::new(CqlType::Float),
        dimensions,
    };
    for (index, argument) in arguments.iter().enumerate() {
        check_argument(name, index, &cql_type, argument)?;
    }
    Ok(ScalarFunction {
        argument_types: vec![cql_type.clone(), cql_type],
        ..settle(declaration)
    })
}

/// Settles a function that takes one argument of any type.
fn of_any(
    declaration: &'static FunctionDeclaration,
    arguments: &[CallArgument<'_>],
) -> Result<ScalarFunction, CqlError> {
    check_count(declaration.name, 1, arguments.len())?;
    let argument = &arguments[0];
    let cql_type = match argument {
        CallArgument::Typed { cql_type, .. } => Some((*cql_type).clone()),
        CallArgument::Term(term) => own_type(term),
    };
    Ok(ScalarFunction {
        argument_types: vec![cql_type.ok_or_else(|| no_type(argument, declaration.name))?],
        ..settle(declaration)
    })
}

/// Settles a function that returns what is wanted where it is called.
fn of_receiver(
    declaration: &'static FunctionDeclaration,
    arguments: &[CallArgument<'_>],
    receiver: Option<&CqlType>,
) -> Result<ScalarFunction, CqlError> {
    let name = declaration.name;
    check(name, &[CqlType::Text], arguments)?;
    match receiver {
        Some(cql_type) => Ok(ScalarFunction {
            return_type: cql_type.clone(),
            ..settle(declaration)
        }),
        None => Err(CqlError::invalid(format!(
            "{name}() cannot be used in the selection clause of a SELECT statement"
        ))),
    }
}

/// Whether calls of a function are of the type that is wanted where they occur.
fn is_of_receiver(name: &str) -> bool {
    overloads(name).any(|declaration| matches!(declaration.signature, FunctionSignature::Receiver))
}

/// Whether a function takes two `vector<float, n>`.
pub fn takes_float_vectors(name: &str) -> bool {
    overloads(name)
        .any(|declaration| matches!(declaration.signature, FunctionSignature::FloatVectors))
}

fn no_type(argument: &CallArgument<'_>, function: &str) -> CqlError {
    CqlError::invalid(format!(
        "Cannot infer type of argument {} in call to function system.{function}: use type casts to disambiguate",
        argument.text()
    ))
}

impl CallArgument<'_> {
    pub(super) fn fits(&self, wanted: &CqlType) -> Assignability {
        match self {
            CallArgument::Term(term) => assignability(term, wanted),
            CallArgument::Typed { cql_type, .. } => {
                if *cql_type == wanted {
                    Assignability::Exact
                } else if is_read_as(cql_type, wanted) {
                    Assignability::Weak
                } else {
                    Assignability::No
                }
            }
        }
    }

    pub(super) fn text(&self) -> String {
        match self {
            CallArgument::Term(term) => term_excerpt(term),
            CallArgument::Typed { text, .. } => (*text).to_owned(),
        }
    }

    /// The dimension of this argument of a similarity function; `None` for a marker or null.
    fn dimensions(&self, function: &str) -> Result<Option<u16>, CqlError> {
        let natural;
        let cql_type = match self {
            CallArgument::Typed { cql_type, .. } => *cql_type,
            CallArgument::Term(term) => {
                let term = term.without_parentheses();
                natural = match term {
                    Term::Marker(_) | Term::Null => return Ok(None),
                    Term::List(elements) => literal_vector(elements.len()),
                    // Cassandra's words for a text of ASCII letters.
                    Term::Literal(Literal::String(text)) if text.is_ascii() => Some(CqlType::Ascii),
                    _ => own_type(term),
                };
                match &natural {
                    Some(cql_type) => cql_type,
                    None => return Err(self.no_float_vector(function, None)),
                }
            }
        };
        match cql_type.float_vector_dimensions() {
            Some(dimensions) => Ok(Some(dimensions)),
            None => Err(self.no_float_vector(function, Some(cql_type))),
        }
    }

    fn no_float_vector(&self, function: &str, cql_type: Option<&CqlType>) -> CqlError {
        let of_type = cql_type.map_or_else(String::new, |cql_type| format!(" of type {cql_type}"));
        CqlError::invalid(format!(
            "Function system.{function} requires a float vector argument, but found argument {}{of_type}",
            self.text()
        ))
    }
}

/// The float vector type of a list literal; `None` if the list is empty or too long for a vector.
fn literal_vector(length: usize) -> Option<CqlType> {
    let dimensions = u16::try_from(length)
        .ok()
        .filter(|dimensions| (1..=value::MAX_VECTOR_DIMENSIONS).contains(dimensions))?;
    Some(CqlType::Vector {
        element: Box::new(CqlType::Float),
        dimensions,
    })
}

/// Whether every value of `from` is also a value of `to`, with the same bytes.
fn is_read_as(from: &CqlType, to: &CqlType) -> bool {
    type_assignability(from, to) != Assignability::No
        || (from, to) == (&CqlType::Counter, &CqlType::Bigint)
}

#[cfg(test)]
mod tests {
    use cql::ast::BindMarker;
    use value::Literal;

    use super::*;

    fn marker() -> Term {
        Term::Marker(BindMarker {
            index: 0,
            name: None,
        })
    }

    fn vector(dimensions: u16) -> CqlType {
        CqlType::Vector {
            element: Box::new(CqlType::Float),
            dimensions,
        }
    }

    fn typed<'a>(cql_type: &'a CqlType, text: &'a str) -> CallArgument<'a> {
        CallArgument::Typed { cql_type, text }
    }

    fn refused(name: &str, arguments: &[CallArgument<'_>]) -> String {
        resolve(None, name, arguments, None).unwrap_err().message
    }

    #[test]
    fn overloads_are_chosen_by_the_type() {
        let timestamp = resolve(None, "todate", &[typed(&CqlType::Timestamp, "t")], None).unwrap();
        assert_eq!(timestamp.argument_types, [CqlType::Timestamp]);
        let timeuuid = resolve(
            Some("system"),
            "todate",
            &[typed(&CqlType::Timeuuid, "t")],
            None,
        )
        .unwrap();
        assert_eq!(timeuuid.argument_types, [CqlType::Timeuuid]);
    }

    #[test]
    fn wrong_calls_are_explained() {
        let int = CqlType::Int;
        let cases: Vec<(&str, Vec<CallArgument<'_>>, &str)> = vec![
            ("nope", vec![], "Unknown function nope called"),
            (
                "normalize_l2",
                vec![],
                "The function normalize_l2 of Astra is not supported by Annulus: send vectors of length 1, or use \
                 the similarity function cosine, which heeds no length",
            ),
            (
                "mintimeuuid",
                vec![],
                "Invalid number of arguments in call to function system.mintimeuuid: 1 required but 0 provided",
            ),
            (
                "mintimeuuid",
                vec![typed(&int, "i")],
                "Type error: i cannot be passed as argument 0 of function system.mintimeuuid of type timestamp",
            ),
            (
                "todate",
                vec![typed(&int, "i")],
                "Invalid call to function system.todate, none of its type signatures match (known type signatures: system.todate : (timeuuid) -> date, system.todate : (timestamp) -> date)",
            ),
            (
                "similarity_cosine",
                vec![typed(&int, "i"), typed(&int, "i")],
                "Function system.similarity_cosine requires a float vector argument, but found argument i of type int",
            ),
        ];
        for (name, arguments, message) in cases {
            assert_eq!(refused(name, &arguments), message);
        }
        assert_eq!(
            resolve(Some("ks"), "now", &[], None).unwrap_err().message,
            "Unknown function 'ks.now'"
        );
    }

    #[test]
    fn one_argument_fixes_the_dimension() {
        let (three, two, unknown) = (vector(3), vector(2), marker());
        let settled = resolve(
            None,
            "similarity_cosine",
            &[CallArgument::Term(&unknown), typed(&three, "v")],
            None,
        )
        .unwrap();
        assert_eq!(settled.argument_types, [three.clone(), three.clone()]);
        assert_eq!(settled.return_type, CqlType::Float);
        assert_eq!(settled.argument_name(0), "arg0(system.similarity_cosine)");

        assert_eq!(
            refused("similarity_cosine", &[typed(&three, "v"), typed(&two, "w")]),
            "All arguments must have the same vector dimensions, but found vector<float, 3> and vector<float, 2>"
        );
        assert_eq!(
            refused(
                "similarity_cosine",
                &[CallArgument::Term(&unknown), CallArgument::Term(&unknown)]
            ),
            "Cannot infer type of argument ? in call to function system.similarity_cosine(vector<float, n>, \
             vector<float, n>): use type casts to disambiguate"
        );
    }

    #[test]
    fn a_literal_fixes_the_dimension_too() {
        let one = || Term::Literal(Literal::Integer("1".to_owned()));
        let literal = Term::List(vec![one(), one()]);
        let unknown = marker();
        let settled = resolve(
            None,
            "similarity_euclidean",
            &[CallArgument::Term(&literal), CallArgument::Term(&unknown)],
            None,
        )
        .unwrap();
        assert_eq!(settled.argument_types, [vector(2), vector(2)]);
        let three = vector(3);
        assert!(
            refused(
                "similarity_euclidean",
                &[typed(&three, "v"), CallArgument::Term(&literal)]
            )
            .starts_with("All arguments must have the same vector dimensions")
        );
    }
}
