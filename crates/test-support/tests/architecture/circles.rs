//! Circles among the children of a module.

use std::collections::{BTreeMap, BTreeSet};

use crate::modules::ModulePath;
use crate::uses::Uses;

/// Children of one module that use each other in a circle.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Circle {
    /// The crate and the module that they are children of: `store::routes`.
    parent: String,
    children: BTreeSet<String>,
}

/// Which child uses which.
type Graph<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// The circles of a crate.
pub fn among(name: &str, uses: &Uses) -> Vec<Circle> {
    let parents: BTreeSet<&[String]> = uses
        .keys()
        .filter_map(|module| module.split_last())
        .map(|(_, parent)| parent)
        .collect();
    let circles = parents.iter().flat_map(|parent| {
        let graph = graph(parent, uses);
        let path = std::iter::once(name).chain(parent.iter().map(String::as_str));
        let path = path.collect::<Vec<_>>().join("::");
        rings(&graph).into_iter().map(move |children| Circle {
            parent: path.clone(),
            children: children.into_iter().map(str::to_owned).collect(),
        })
    });
    circles.collect()
}

/// The child of `parent` that a module is or lies in.
fn child<'a>(parent: &[String], module: &'a ModulePath) -> Option<&'a str> {
    let below = module.strip_prefix(parent)?;
    below.first().map(String::as_str)
}

fn graph<'a>(parent: &[String], uses: &'a Uses) -> Graph<'a> {
    let mut graph = Graph::new();
    for (user, used) in uses {
        let Some(user) = child(parent, user) else {
            continue;
        };
        let used = used.iter().filter_map(|used| child(parent, used));
        let others = used.filter(|used| *used != user);
        graph.entry(user).or_default().extend(others);
    }
    graph
}

/// All that can be reached from a child, itself only by a circle.
fn reached<'a>(graph: &Graph<'a>, from: &str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut next: Vec<&str> = graph.get(from).into_iter().flatten().copied().collect();
    while let Some(child) = next.pop() {
        if reached.insert(child) {
            next.extend(graph.get(child).into_iter().flatten());
        }
    }
    reached
}

/// The strongly connected components of more than one child.
fn rings<'a>(graph: &Graph<'a>) -> BTreeSet<BTreeSet<&'a str>> {
    let reach: BTreeMap<&str, BTreeSet<&str>> = graph
        .keys()
        .map(|child| (*child, reached(graph, child)))
        .collect();
    let in_circle = reach.iter().filter(|(child, all)| all.contains(*child));
    in_circle
        .map(|(child, all)| {
            let back = |other: &&&str| reach.get(**other).is_some_and(|all| all.contains(child));
            all.iter().filter(back).copied().collect()
        })
        .collect()
}

/// Reads `circles.txt`: a reason in lines with `#`, then `parent: child child ...`.
pub fn listed(list: &str) -> BTreeSet<Circle> {
    let mut has_reason = false;
    let mut circles = BTreeSet::new();
    for line in list.lines().filter(|line| !line.trim().is_empty()) {
        if line.starts_with('#') {
            has_reason = true;
            continue;
        }
        assert!(has_reason, "a circle without a reason: {line}");
        has_reason = false;
        let (parent, children) = line.split_once(": ").expect("parent: children");
        circles.insert(Circle {
            parent: parent.to_owned(),
            children: children.split_whitespace().map(str::to_owned).collect(),
        });
    }
    circles
}
