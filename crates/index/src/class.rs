//! The classes of indexes that index services build.

use cql::ast::CreateIndex;

/// The class of an index that an index service builds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SearchClass {
    /// On vectors: finds the rows whose vectors are nearest to one.
    Vector,
    /// On texts: finds the rows whose words fit a query best.
    FullText,
}

impl SearchClass {
    /// The class of a name, in upper or lower case.
    pub fn of(name: &str) -> Option<SearchClass> {
        let mut classes = [SearchClass::Vector, SearchClass::FullText].into_iter();
        classes.find(|class| class.name().eq_ignore_ascii_case(name))
    }

    /// The class that a CREATE INDEX names; `None` if it names none of these.
    pub fn of_statement(create: &CreateIndex) -> Option<SearchClass> {
        SearchClass::of(create.using.as_deref()?)
    }

    /// The name, as `system_schema.indexes` holds it.
    pub const fn name(self) -> &'static str {
        match self {
            SearchClass::Vector => "vector_index",
            SearchClass::FullText => "fulltext_index",
        }
    }

    /// The word for an index of the class, as messages have it within a sentence.
    pub fn noun(self) -> &'static str {
        match self {
            SearchClass::Vector => "vector index",
            SearchClass::FullText => "full-text index",
        }
    }

    /// The word for an index of the class, as messages begin with it.
    pub fn title(self) -> &'static str {
        match self {
            SearchClass::Vector => "Vector index",
            SearchClass::FullText => "Full-text index",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_known_by_its_name_in_any_case() {
        for class in [SearchClass::Vector, SearchClass::FullText] {
            assert_eq!(SearchClass::of(class.name()), Some(class));
            assert_eq!(SearchClass::of(&class.name().to_uppercase()), Some(class));
        }
        assert_eq!(SearchClass::of("StorageAttachedIndex"), None);
        let using = |text: &str| {
            let text = format!("CREATE CUSTOM INDEX ON t (c) USING '{text}'");
            match cql::parser::parse_statement(&text).unwrap().statement {
                cql::ast::Statement::CreateIndex(create) => SearchClass::of_statement(&create),
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(using("FullText_Index"), Some(SearchClass::FullText));
        assert_eq!(using("sai"), None);
    }
}
