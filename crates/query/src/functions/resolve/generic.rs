//! Functions whose types depend on their first argument: those of collections and those that mask.

use cql::ast::Term;
use cql::error::CqlError;
use value::{CqlType, Literal};

use super::{Assignability, no_type, own_type};
use crate::functions::collections::CollectionFunction;
use crate::functions::mask::DataMask;
use crate::functions::{CallArgument, FunctionBody, ScalarFunction};

/// The function, if `name` is one, with its types.
///
/// # Errors
/// Another number of arguments, arguments of other types, and a first one without a type.
pub(super) fn resolve(
    name: &str,
    arguments: &[CallArgument<'_>],
) -> Option<Result<ScalarFunction, CqlError>> {
    if let Some((name, function)) = CollectionFunction::by_name(name) {
        return Some(of_collection(name, function, arguments));
    }
    let (name, mask) = DataMask::by_name(name)?;
    Some(masking(name, mask, arguments))
}

fn of_collection(
    name: &'static str,
    function: CollectionFunction,
    arguments: &[CallArgument<'_>],
) -> Result<ScalarFunction, CqlError> {
    let [argument] = arguments else {
        return Err(miscounted(name, function.parameter()));
    };
    let cql_type = type_of(argument).ok_or_else(|| no_type(argument, name))?;
    let return_type = function.result_type(&cql_type).ok_or_else(|| {
        CqlError::invalid(format!(
            "Function system.{name} requires a {} argument, but found argument {} of type {cql_type}",
            function.parameter(),
            argument.text()
        ))
    })?;
    Ok(ScalarFunction {
        name,
        argument_types: vec![cql_type],
        return_type,
        is_foldable: true,
        body: FunctionBody::OfCollection(function),
    })
}

fn masking(
    name: &'static str,
    mask: DataMask,
    arguments: &[CallArgument<'_>],
) -> Result<ScalarFunction, CqlError> {
    let Some(masked) = arguments.first() else {
        return Err(miscounted(name, mask.parameters()));
    };
    let cql_type = type_of(masked).ok_or_else(|| no_type(masked, name))?;
    let is_of_texts = matches!(mask, DataMask::Inner | DataMask::Outer);
    if is_of_texts && !matches!(cql_type, CqlType::Text | CqlType::Ascii) {
        return Err(CqlError::invalid(format!(
            "Function system.{name} requires an argument of type [text|varchar|ascii], but found \
             argument {} of type {cql_type}",
            masked.text()
        )));
    }
    let argument_types = mask
        .argument_types(&cql_type, arguments.len())
        .ok_or_else(|| miscounted(name, mask.parameters()))?;
    for (index, (wanted, argument)) in argument_types.iter().zip(arguments).enumerate().skip(1) {
        if argument.fits(wanted) == Assignability::No {
            if mask == DataMask::Hash {
                let own =
                    type_of(argument).map_or_else(String::new, |own| format!(" of type {own}"));
                return Err(CqlError::invalid(format!(
                    "Function system.{name} requires an argument of type text, but found argument {}{own}",
                    argument.text()
                )));
            }
            return Err(CqlError::invalid(format!(
                "Type error: {} cannot be passed as argument {index} of function system.{name} of \
                 type {wanted}",
                argument.text()
            )));
        }
        if let CallArgument::Term(Term::Literal(Literal::String(text))) = argument {
            mask.check(index, text)?;
        }
    }
    Ok(ScalarFunction {
        name,
        argument_types,
        return_type: mask.result_type(cql_type),
        is_foldable: true,
        body: FunctionBody::Mask(mask),
    })
}

fn miscounted(name: &str, parameters: &str) -> CqlError {
    CqlError::invalid(format!(
        "Invalid number of arguments for function system.{name}({parameters})"
    ))
}

/// The type of an argument where none is wanted of it.
fn type_of(argument: &CallArgument<'_>) -> Option<CqlType> {
    match argument {
        CallArgument::Typed { cql_type, .. } => Some((*cql_type).clone()),
        CallArgument::Term(term) => collection_type(term).or_else(|| own_type(term)),
    }
}

/// The type of a collection that is written out, by its first element.
fn collection_type(term: &Term) -> Option<CqlType> {
    let of_first = |terms: &[Term]| terms.first().and_then(own_type).map(Box::new);
    Some(match term {
        Term::List(terms) => CqlType::List {
            element: of_first(terms)?,
            frozen: false,
        },
        Term::Set(terms) => CqlType::Set {
            element: of_first(terms)?,
            frozen: false,
        },
        Term::Map(entries) => {
            let (key, value) = entries.first()?;
            CqlType::Map {
                key: Box::new(own_type(key)?),
                value: Box::new(own_type(value)?),
                frozen: false,
            }
        }
        _ => return None,
    })
}
