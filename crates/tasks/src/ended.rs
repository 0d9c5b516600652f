//! The trees that are retained after the end of their root.

use std::collections::{HashMap, VecDeque};

use uuid::Uuid;

use crate::retention::TaskRetention;
use crate::scope::TaskScope;
use crate::spec::TaskSpec;

/// Roots that have ended, oldest first, by their kind.
#[derive(Debug, Default)]
pub struct EndedRoots {
    by_kind: HashMap<&'static str, VecDeque<EndedRoot>>,
}

#[derive(Debug)]
struct EndedRoot {
    id: Uuid,
    scope: TaskScope,
    well: bool,
}

impl EndedRoots {
    /// Adds a root that has ended. Returns the one that is to be forgotten for it, if there are too
    /// many.
    pub fn add(
        &mut self,
        id: Uuid,
        spec: &TaskSpec,
        well: bool,
        retention: &TaskRetention,
    ) -> Option<Uuid> {
        let roots = self.by_kind.entry(spec.kind).or_default();
        let scope = spec.scope.clone();
        roots.push_back(EndedRoot { id, scope, well });
        let is_like = |root: &EndedRoot| root.well == well && root.scope == spec.scope;
        let like = roots.iter().filter(|root| is_like(root)).count();
        let forgotten = match like > retention.trees_of_a_scope_max {
            true => roots.iter().position(is_like),
            false => (roots.len() > retention.trees_of_a_kind_max).then_some(0),
        };
        Some(roots.remove(forgotten?)?.id)
    }
}
