//! User types: named fields, each of a type, which make up one value.

use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::collection::put_field;
use crate::{CqlType, ValueError};

/// The most types of which a user type may be made up, with the fields of the user types in it
/// counted wherever they occur. The metadata of each answer writes them out, so without a limit a
/// few definitions that name each other twice would take gigabytes.
const TYPES_MAX: usize = 4096;

/// The deepest nesting of types in a user type. Values are read by recursion.
const DEPTH_MAX: usize = 24;

/// The reason for which a type is refused that has too many types in it.
pub const TOO_LARGE: &str = "a type is made up of at most 4096 types, and a user type nests at \
     most 24 deep, with the fields of the user types in it counted wherever they stand";

/// A user type. Its value is a tuple of its fields, of which the last may be left out.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct UserType {
    /// The keyspace in which the type is defined, and the only one in which it is used.
    pub keyspace: String,
    /// The name without its keyspace.
    pub name: String,
    /// The names of the fields in their order.
    pub field_names: Vec<String>,
    /// The types of the fields, as many as names.
    pub field_types: Vec<CqlType>,
}

impl UserType {
    /// The position of a field by its name.
    pub fn position(&self, field: &str) -> Option<usize> {
        self.field_names.iter().position(|name| name == field)
    }

    /// The fields as (name, type), in their order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &CqlType)> {
        let names = self.field_names.iter().map(String::as_str);
        names.zip(&self.field_types)
    }

    /// The fields of a serialised value, one for each field of the type; `None` for a field that is
    /// null or left out.
    ///
    /// # Errors
    /// If the bytes are cut short or have more fields than the type.
    pub fn split<'v>(&self, value: &'v [u8]) -> Result<Vec<Option<&'v [u8]>>, ValueError> {
        let fields = crate::elements::TupleFields::new(self.field_names.len(), value);
        let mut split = fields.collect::<Result<Vec<_>, _>>()?;
        split.resize(self.field_names.len(), None);
        Ok(split)
    }

    /// A serialised value of the cells of a non-frozen value, which come as (path, value) in the
    /// order of their paths. A path is a field's position, serialised as a smallint. A cell of no
    /// field is left out.
    pub fn join<'v>(&self, cells: impl Iterator<Item = (&'v [u8], &'v [u8])>) -> Bytes {
        let mut fields: Vec<Option<&[u8]>> = vec![None; self.field_names.len()];
        for (path, value) in cells {
            let position = path.try_into().map(u16::from_be_bytes);
            if let Ok(position) = position
                && let Some(field) = fields.get_mut(usize::from(position))
            {
                *field = Some(value);
            }
        }
        let mut out = BytesMut::new();
        for field in fields {
            match field {
                Some(field) => put_field(&mut out, field),
                None => out.put_i32(-1),
            }
        }
        out.freeze()
    }

    /// The path of the cell of a field, which is the field's position as a smallint.
    ///
    /// # Panics
    /// Never: a user type has at most as many fields as a smallint counts ([`TOO_LARGE`]).
    pub fn path(position: usize) -> Bytes {
        let position = u16::try_from(position).expect("a user type has few fields");
        Bytes::copy_from_slice(&position.to_be_bytes())
    }

    /// The type with another definition in the place of the one that has its name, wherever that
    /// one is used.
    #[must_use]
    pub fn with(&self, newer: &Arc<UserType>) -> UserType {
        let types = self.field_types.iter();
        UserType {
            field_types: types.map(|cql_type| cql_type.with(newer)).collect(),
            ..self.clone()
        }
    }

    /// Checks the size of a type whose fields have types that were checked before, with `newer` in
    /// the place of the type that has its name.
    ///
    /// # Errors
    /// [`TOO_LARGE`].
    pub fn check_size(&self, newer: Option<&UserType>) -> Result<(), ValueError> {
        let replaced = newer.map(|newer| (newer, size_of_fields(newer, None)));
        let (types, depth) = size_of_fields(self, replaced);
        if types > TYPES_MAX || depth > DEPTH_MAX {
            return Err(ValueError::new(TOO_LARGE));
        }
        Ok(())
    }
}

impl CqlType {
    /// Checks the number of types of which a type is made up, with `newer` in the place of the user
    /// type that has its name.
    ///
    /// # Errors
    /// [`TOO_LARGE`].
    pub fn check_size(&self, newer: Option<&UserType>) -> Result<(), ValueError> {
        let replaced = newer.map(|newer| (newer, size_of_fields(newer, None)));
        match size(self, replaced) {
            (types, _) if types > TYPES_MAX => Err(ValueError::new(TOO_LARGE)),
            _ => Ok(()),
        }
    }
}

/// A number of types, and the depth to which they nest.
type Size = (usize, usize);

fn size_of_fields(definition: &UserType, replaced: Option<(&UserType, Size)>) -> Size {
    let types = definition.field_types.iter();
    types.fold((1, 1), |(types, depth), field| {
        let (more, below) = size(field, replaced);
        (types.saturating_add(more), depth.max(below + 1))
    })
}

fn size(cql_type: &CqlType, replaced: Option<(&UserType, Size)>) -> Size {
    let around = |parts: &[&CqlType]| {
        let sizes = parts.iter().map(|part| size(part, replaced));
        sizes.fold((1, 1), |(types, depth), (more, below)| {
            (usize::saturating_add(types, more), depth.max(below + 1))
        })
    };
    match cql_type {
        CqlType::List { element, .. }
        | CqlType::Set { element, .. }
        | CqlType::Vector { element, .. } => around(&[element]),
        CqlType::Map { key, value, .. } => around(&[key, value]),
        CqlType::Tuple(types) => around(&types.iter().collect::<Vec<_>>()),
        CqlType::UserType { definition, .. } => match replaced {
            Some((newer, size)) if newer.is_named_as(definition) => size,
            _ => size_of_fields(definition, replaced),
        },
        _ => (1, 1),
    }
}

impl UserType {
    fn is_named_as(&self, other: &UserType) -> bool {
        self.name == other.name && self.keyspace == other.keyspace
    }
}

impl CqlType {
    /// The type with another definition in the place of the user type that has its name.
    #[must_use]
    pub fn with(&self, newer: &Arc<UserType>) -> CqlType {
        match self {
            CqlType::UserType { definition, frozen } => CqlType::UserType {
                definition: match newer.is_named_as(definition) {
                    true => newer.clone(),
                    false => Arc::new(definition.with(newer)),
                },
                frozen: *frozen,
            },
            other => other.with_parts(|part| part.with(newer)),
        }
    }

    /// The type with others in the place of those that it is made of; a user type stays as it is.
    fn with_parts(&self, other: impl Fn(&CqlType) -> CqlType) -> CqlType {
        let boxed = |part: &CqlType| Box::new(other(part));
        match self {
            CqlType::List { element, frozen } => CqlType::List {
                element: boxed(element),
                frozen: *frozen,
            },
            CqlType::Set { element, frozen } => CqlType::Set {
                element: boxed(element),
                frozen: *frozen,
            },
            CqlType::Map { key, value, frozen } => CqlType::Map {
                key: boxed(key),
                value: boxed(value),
                frozen: *frozen,
            },
            CqlType::Tuple(types) => CqlType::Tuple(types.iter().map(other).collect()),
            CqlType::Vector {
                element,
                dimensions,
            } => CqlType::Vector {
                element: boxed(element),
                dimensions: *dimensions,
            },
            simple => simple.clone(),
        }
    }

    /// Whether the user type of this name is the type or occurs anywhere in it.
    pub fn uses(&self, user_type: &UserType) -> bool {
        match self {
            CqlType::List { element, .. }
            | CqlType::Set { element, .. }
            | CqlType::Vector { element, .. } => element.uses(user_type),
            CqlType::Map { key, value, .. } => key.uses(user_type) || value.uses(user_type),
            CqlType::Tuple(types) => types.iter().any(|part| part.uses(user_type)),
            CqlType::UserType { definition, .. } => {
                let mut types = definition.field_types.iter();
                user_type.is_named_as(definition) || types.any(|part| part.uses(user_type))
            }
            _ => false,
        }
    }

    /// The type with a tuple in the place of each user type, which means the same values.
    #[must_use]
    pub fn without_user_types(&self) -> CqlType {
        match self {
            CqlType::UserType { definition, .. } => {
                let types = definition.field_types.iter();
                CqlType::Tuple(types.map(CqlType::without_user_types).collect())
            }
            other => other.with_parts(CqlType::without_user_types),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Value, canonical, compare, json_text};

    fn defined(name: &str, fields: &[(&str, CqlType)]) -> Arc<UserType> {
        Arc::new(UserType {
            keyspace: "k".to_owned(),
            name: name.to_owned(),
            field_names: fields.iter().map(|(name, _)| (*name).to_owned()).collect(),
            field_types: fields.iter().map(|(_, kind)| kind.clone()).collect(),
        })
    }

    fn frozen(definition: &Arc<UserType>) -> CqlType {
        CqlType::UserType {
            definition: definition.clone(),
            frozen: true,
        }
    }

    fn value(definition: &Arc<UserType>, fields: Vec<Option<Value>>) -> Value {
        Value::UserType {
            definition: definition.clone(),
            fields,
        }
    }

    #[test]
    fn a_value_is_the_tuple_of_its_fields() {
        let phone = defined(
            "phone",
            &[("country", CqlType::Int), ("Number", CqlType::Text)],
        );
        let all = value(
            &phone,
            vec![Some(Value::Int(1)), Some(Value::Text("a".to_owned()))],
        );
        let bytes = all.serialize();
        assert_eq!(&bytes[..], b"\0\0\0\x04\0\0\0\x01\0\0\0\x01a");
        assert_eq!(Value::deserialize(&frozen(&phone), &bytes), Ok(all.clone()));
        assert_eq!(all.to_literal(), "{country: 1, \"Number\": 'a'}");
        let short = value(&phone, vec![Some(Value::Int(1))]).serialize();
        let json = json_text(&frozen(&phone), Some(&short)).unwrap();
        assert_eq!(json, r#"{"country": 1, "\"Number\"": null}"#);
        assert_eq!(
            phone.split(&short).unwrap(),
            [Some(&[0, 0, 0, 1][..]), None]
        );
        assert!(phone.split(&bytes[..10]).is_err());
        let cells = [(UserType::path(1), "a"), (UserType::path(7), "b")];
        let cells = cells
            .iter()
            .map(|(path, field)| (&path[..], field.as_bytes()));
        let joined = phone.join(cells);
        assert_eq!(phone.split(&joined).unwrap(), [None, Some(&b"a"[..])]);
        let null = value(&phone, vec![Some(Value::Int(1)), None]).serialize();
        assert!(compare(&frozen(&phone), &short, &null).is_eq());
        assert!(compare(&frozen(&phone), &short, &bytes).is_lt());
    }

    #[test]
    fn sets_in_fields_are_in_order() {
        let tags = CqlType::Set {
            element: Box::new(CqlType::Int),
            frozen: false,
        };
        let tagged = defined("tagged", &[("tags", tags)]);
        let ints = |numbers: [i32; 2]| Value::List(numbers.map(Value::Int).into());
        let given = Value::Tuple(vec![Some(ints([2, 1]))]).serialize();
        let sorted: Bytes = Value::Tuple(vec![Some(ints([1, 2]))]).serialize();
        assert_eq!(canonical(&frozen(&tagged), &given), Ok(sorted));
    }

    #[test]
    fn a_new_definition_stands_wherever_the_type_is_used() {
        let old = defined("a", &[("x", CqlType::Int)]);
        let new = defined("a", &[("x", CqlType::Int), ("y", CqlType::Text)]);
        let list_of = |definition| CqlType::List {
            element: Box::new(frozen(definition)),
            frozen: false,
        };
        let outer = |inner| defined("b", &[("l", list_of(inner))]);
        let column = |inner| CqlType::Tuple(vec![frozen(&outer(inner)), CqlType::Int]);
        assert_eq!(column(&old).with(&new), column(&new));
        assert!(column(&old).uses(&new));
        assert!(!column(&old).uses(&defined("c", &[])));
        assert_eq!(
            column(&old).without_user_types().to_string(),
            "frozen<tuple<frozen<tuple<list<frozen<tuple<int>>>>>, int>>"
        );
    }

    #[test]
    fn types_that_double_at_each_step_are_refused_before_they_are_large() {
        let mut doubled = defined("t0", &[("a", CqlType::Int), ("b", CqlType::Int)]);
        let mut steps = 0;
        while doubled.check_size(None).is_ok() {
            steps += 1;
            let part = frozen(&doubled);
            doubled = defined(&format!("t{steps}"), &[("a", part.clone()), ("b", part)]);
        }
        assert_eq!(steps, 11);
        let wide: Vec<_> = (0..400).map(|_| ("f", CqlType::Int)).collect();
        let one = defined("one", &[("a", CqlType::Int)]);
        let many: Vec<_> = (0..11).map(|_| ("f", frozen(&one))).collect();
        let many = defined("many", &many);
        assert!(many.check_size(None).is_ok());
        assert!(many.check_size(Some(&defined("one", &wide))).is_err());
    }
}
