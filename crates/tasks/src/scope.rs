//! The scope of a task: the things that it works on.

/// The scope of a task, from the keyspace down to a part of the ring. A field that is absent
/// narrows nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TaskScope {
    /// The keyspace, case preserved.
    pub keyspace: Option<String>,
    /// The table, case preserved.
    pub table: Option<String>,
    /// The index, case preserved.
    pub index: Option<String>,
    /// A part of the ring.
    pub token_range: Option<InclusiveTokenRange>,
    /// Something that the other fields don't name, such as one of several readers of a log.
    pub entity: Option<String>,
}

/// A part of the token ring, both ends inclusive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InclusiveTokenRange {
    /// The first token.
    pub start: i64,
    /// The last token.
    pub end: i64,
}

impl TaskScope {
    /// The narrowest kind of thing that the scope names.
    pub fn level(&self) -> &'static str {
        if self.token_range.is_some() {
            "token_range"
        } else if self.index.is_some() {
            "index"
        } else if self.table.is_some() {
            "table"
        } else if self.keyspace.is_some() {
            "keyspace"
        } else {
            "node"
        }
    }

    /// This scope, narrowed down to a part of the ring.
    #[must_use]
    pub fn in_range(&self, token_range: InclusiveTokenRange) -> TaskScope {
        TaskScope {
            token_range: Some(token_range),
            ..self.clone()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scope_is_as_narrow_as_its_narrowest_part() {
        let mut scope = TaskScope::default();
        assert_eq!(scope.level(), "node");
        scope.keyspace = Some("ks".to_owned());
        assert_eq!(scope.level(), "keyspace");
        scope.table = Some("t".to_owned());
        assert_eq!(scope.level(), "table");
        scope.index = Some("i".to_owned());
        assert_eq!(scope.level(), "index");
        let range = InclusiveTokenRange { start: 1, end: 2 };
        let narrowed = scope.in_range(range);
        assert_eq!(narrowed.level(), "token_range");
        assert_eq!(narrowed.index, scope.index);
    }
}
