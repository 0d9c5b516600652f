//! Schema of one keyspace under the name of another.

use std::sync::Arc;

use schema::Keyspace;
use value::{CqlType, UserType};

/// A keyspace as it would be under another name. The types of its columns are those of that
/// keyspace, too.
pub(crate) fn in_keyspace(keyspace: &Keyspace, name: &str) -> Keyspace {
    let mut renamed = keyspace.clone();
    name.clone_into(&mut renamed.name);
    for definition in renamed.types.values_mut() {
        *definition = type_in(definition, &keyspace.name, name);
    }
    for table in renamed.tables.values_mut() {
        let table = Arc::make_mut(table);
        name.clone_into(&mut table.keyspace);
        for column in &mut table.columns {
            column.cql_type = column_type_in(&column.cql_type, &keyspace.name, name);
        }
    }
    renamed
}

/// A user type as it is in another keyspace, with the types in it.
fn type_in(definition: &Arc<UserType>, from: &str, to: &str) -> Arc<UserType> {
    if definition.keyspace != from {
        return Arc::clone(definition);
    }
    let fields = definition.field_types.iter();
    Arc::new(UserType {
        keyspace: to.to_owned(),
        name: definition.name.clone(),
        field_names: definition.field_names.clone(),
        field_types: fields.map(|it| column_type_in(it, from, to)).collect(),
    })
}

fn column_type_in(cql_type: &CqlType, from: &str, to: &str) -> CqlType {
    let boxed = |inner: &CqlType| Box::new(column_type_in(inner, from, to));
    match cql_type {
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
        CqlType::Tuple(elements) => {
            let elements = elements.iter();
            CqlType::Tuple(elements.map(|it| column_type_in(it, from, to)).collect())
        }
        CqlType::UserType { definition, frozen } => CqlType::UserType {
            definition: type_in(definition, from, to),
            frozen: *frozen,
        },
        CqlType::Vector {
            element,
            dimensions,
        } => CqlType::Vector {
            element: boxed(element),
            dimensions: *dimensions,
        },
        plain => plain.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_follow_their_keyspace_at_any_depth() {
        let address = Arc::new(UserType {
            keyspace: "old".to_owned(),
            name: "address".to_owned(),
            field_names: vec!["street".to_owned()],
            field_types: vec![CqlType::Text],
        });
        let of_address = CqlType::UserType {
            definition: address.clone(),
            frozen: true,
        };
        let person = Arc::new(UserType {
            keyspace: "old".to_owned(),
            name: "person".to_owned(),
            field_names: vec!["homes".to_owned()],
            field_types: vec![CqlType::List {
                element: Box::new(of_address),
                frozen: true,
            }],
        });
        let moved = type_in(&person, "old", "new");
        assert_eq!(moved.keyspace, "new");
        let CqlType::List { element, .. } = &moved.field_types[0] else {
            panic!("a list");
        };
        assert_eq!(element.user_type().unwrap().keyspace, "new");
        assert!(Arc::ptr_eq(&type_in(&person, "other", "new"), &person));
    }
}
