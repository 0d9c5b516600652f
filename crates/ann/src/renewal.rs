//! A graph that is made anew, bit by bit, when too many of its nodes are of the past.
//!
//! Nodes of replaced and removed vectors stay in a [`Graph`]; they cost memory and time. Once they
//! outnumber the vectors held, a fresh graph is begun beside it. Each change then also copies a few
//! vectors over, in ascending order of ids, so that nobody has to wait for a rebuild. Searches go to
//! the old graph, which stays complete, until the fresh one is, too, and takes its place.
//!
//! So a graph takes at most a little more than twice the memory of its vectors, and three and a
//! half times while it is being renewed; without changes, nothing more than it needs.

use crate::Error;
use crate::code::Code;
use crate::graph::Graph;
use crate::id_set::IdSet;

/// Nodes of the past that are not worth a renewal. A scan of as many vectors is as quick as a walk.
const PAST_MIN: usize = 1_000;

/// Ids passed for each change while a renewal goes on. The renewal is through after a quarter as
/// many changes as there are vectors, and so are its costs: a change takes about six times as long
/// meanwhile. Over time a change costs two inserts.
pub(crate) const STEPS_PER_CHANGE: usize = 4;

/// A graph and, while it is being renewed, the one that will replace it.
pub(crate) struct RenewedGraph {
    graph: Graph,
    renewal: Option<Renewal>,
    /// Nodes of the past at which the next renewal begins, if there are fewer vectors than that.
    past_max: usize,
}

struct Renewal {
    fresh: Graph,
    /// The fresh graph holds exactly those vectors whose ids are below this.
    copied_below: u64,
}

impl RenewedGraph {
    pub(crate) fn new(graph: Graph) -> RenewedGraph {
        RenewedGraph {
            graph,
            renewal: None,
            past_max: PAST_MIN,
        }
    }

    /// The graph to search.
    pub(crate) fn graph(&self) -> &Graph {
        &self.graph
    }

    /// Gives `id` a vector, its first or another one. If that fails all is as before.
    pub(crate) fn put(&mut self, id: u32, code: &Code) -> Result<(), Error> {
        self.graph.put(id, code)?;
        if let Some(renewal) = &mut self.renewal
            && renewal.has_passed(id)
            && renewal.fresh.put(id, code).is_err()
        {
            self.give_up();
        }
        Ok(())
    }

    /// Takes the vector of `id` out, if there is one.
    pub(crate) fn take(&mut self, id: u32) {
        self.graph.take(id);
        if let Some(renewal) = &mut self.renewal {
            renewal.fresh.take(id);
        }
    }

    /// Whether [`RenewedGraph::renew`] has something to do.
    pub(crate) fn wants_renewal(&self) -> bool {
        let held = self.graph.len();
        let past = self.graph.nodes() - held;
        self.renewal.is_some() || past > self.past_max.max(held) || (held == 0 && past > 0)
    }

    /// Goes one step on with the renewal: begins it, passes one of `ids`, which are all ids in the
    /// graph and maybe others, or ends it and returns the old graph. To drop that takes time.
    pub(crate) fn renew(&mut self, ids: &IdSet) -> Option<Graph> {
        let Some(renewal) = &mut self.renewal else {
            match self.graph.another() {
                Ok(fresh) => self.renewal = Some(Renewal::new(fresh)),
                Err(_) => self.give_up(),
            }
            return None;
        };
        let next = u32::try_from(renewal.copied_below).ok();
        let Some(id) = next.and_then(|next| ids.next_from(next)) else {
            return self.finish();
        };
        if renewal.copy(id, &self.graph).is_err() {
            self.give_up();
        }
        None
    }

    fn finish(&mut self) -> Option<Graph> {
        let fresh = self.renewal.take()?.fresh;
        debug_assert_eq!(fresh.len(), self.graph.len());
        self.past_max = PAST_MIN;
        Some(std::mem::replace(&mut self.graph, fresh))
    }

    /// For want of memory, most likely. The old graph goes on, and more has to change before the
    /// next attempt.
    fn give_up(&mut self) {
        self.renewal = None;
        self.past_max = 2 * self.graph.nodes();
    }

    /// Bytes in use.
    pub(crate) fn memory_bytes(&self) -> usize {
        let fresh = self.renewal.as_ref().map(|r| r.fresh.memory_bytes());
        self.graph.memory_bytes() + fresh.unwrap_or(0)
    }
}

impl Renewal {
    fn new(fresh: Graph) -> Renewal {
        Renewal {
            fresh,
            copied_below: 0,
        }
    }

    fn has_passed(&self, id: u32) -> bool {
        u64::from(id) < self.copied_below
    }

    fn copy(&mut self, id: u32, from: &Graph) -> Result<(), Error> {
        if from.contains(id) {
            self.fresh.put(id, &from.code(id)?)?;
        }
        self.copied_below = u64::from(id) + 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Metric, Options};

    fn graph() -> RenewedGraph {
        let options = Options {
            metric: Metric::Euclidean,
            ..Options::new(1)
        };
        RenewedGraph::new(Graph::new(&options, 1).expect("valid options"))
    }

    fn code(x: f32) -> Code {
        Code::Floats(vec![x])
    }

    /// Puts ids until a renewal is wanted; returns them.
    fn worn(graph: &mut RenewedGraph) -> IdSet {
        let mut ids = IdSet::default();
        for id in 0..10 {
            ids.insert(id);
            graph.put(id, &code(id as f32)).expect("put");
        }
        while !graph.wants_renewal() {
            graph.put(3, &code(3.0)).expect("put");
        }
        ids
    }

    #[test]
    fn a_graph_mostly_of_the_past_becomes_a_fresh_one() {
        let mut graph = graph();
        let ids = worn(&mut graph);
        assert_eq!(graph.graph().nodes(), 10 + PAST_MIN + 1);
        let mut steps = 0;
        while graph.wants_renewal() {
            graph.renew(&ids);
            steps += 1;
        }
        // A beginning, each id, an end.
        assert_eq!(steps, 1 + 10 + 1);
        assert_eq!((graph.graph().nodes(), graph.graph().len()), (10, 10));
        for id in 0..10 {
            assert_eq!(graph.graph().code(id), Ok(code(id as f32)));
        }
    }

    #[test]
    fn what_changes_during_a_renewal_is_in_the_fresh_graph() {
        let mut graph = graph();
        let mut ids = worn(&mut graph);
        // Passes ids 0 to 4.
        for _ in 0..6 {
            graph.renew(&ids);
        }
        for changed in [1, 8] {
            graph.put(changed, &code(0.5)).expect("put");
        }
        for removed in [2, 9] {
            graph.take(removed);
            ids.remove(removed);
        }
        let mut retired = None;
        while graph.wants_renewal() {
            retired = graph.renew(&ids);
        }
        assert!(retired.is_some_and(|old| old.nodes() > PAST_MIN));
        let kept: Vec<u32> = (0..10).filter(|&id| graph.graph().contains(id)).collect();
        assert_eq!(kept, [0, 1, 3, 4, 5, 6, 7, 8]);
        assert_eq!(graph.graph().code(1), Ok(code(0.5)));
        assert_eq!(graph.graph().code(8), Ok(code(0.5)));
        assert_eq!(graph.graph().code(7), Ok(code(7.0)));
    }

    #[test]
    fn an_emptied_graph_is_renewed_at_once() {
        let mut graph = graph();
        graph.put(u32::MAX, &code(1.0)).expect("put");
        graph.take(u32::MAX);
        let ids = IdSet::default();
        assert!(graph.wants_renewal());
        graph.renew(&ids);
        assert!(graph.renew(&ids).is_some());
        assert!(!graph.wants_renewal());
        assert_eq!(graph.graph().nodes(), 0);
    }
}
