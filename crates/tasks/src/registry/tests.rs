use super::*;
use crate::scope::TaskScope;
use crate::status::CompletionState;

fn spec(kind: &'static str) -> TaskSpec {
    TaskSpec {
        kind,
        scope: TaskScope::default(),
        units: "rows",
        total: None,
        counters: &["found", "lost"],
        abortable: true,
    }
}

/// Work of one kind on a thing of this name.
fn on(entity: &str) -> TaskSpec {
    TaskSpec {
        scope: TaskScope {
            entity: Some(entity.to_owned()),
            ..TaskScope::default()
        },
        ..spec("work")
    }
}

fn kinds(list: &[TaskSnapshot]) -> Vec<&'static str> {
    list.iter().map(|status| status.kind).collect()
}

#[test]
fn a_task_tells_how_far_it_is_and_how_it_ended() {
    let registry = TaskRegistry::default();
    let task = registry.start(spec("scan"));
    let id = task.id();
    let status = registry.status(id).unwrap();
    assert_eq!(
        (status.state, status.end_time),
        (CompletionState::Running, None)
    );
    assert_eq!(
        (status.progress_completed, status.progress_total),
        (0, None)
    );

    task.set_total(10);
    task.add(3);
    task.add(4);
    task.count("lost", 2);
    let status = registry.status(id).unwrap();
    assert_eq!(status.progress_completed, 7);
    assert_eq!(status.progress_total, Some(10));
    assert_eq!(status.counters, [("found", 0), ("lost", 2)]);

    task.failed("no room");
    let status = registry.status(id).unwrap();
    assert_eq!(status.state, CompletionState::Failed);
    assert_eq!(status.error.as_deref(), Some("no room"));
    assert!(status.end_time.unwrap() >= status.start_time);
}

#[test]
fn parts_are_seen_below_the_whole() {
    let registry = TaskRegistry::default();
    let build = registry.start(spec("build"));
    let scan = build.child(spec("scan"));
    let range = scan.child(spec("range"));
    registry.start(spec("repair")).done();
    assert_eq!(kinds(&registry.list(false)), ["build", "repair"]);
    assert_eq!(
        kinds(&registry.list(true)),
        ["build", "scan", "range", "repair"]
    );
    let tree = registry.tree(build.id()).unwrap();
    assert_eq!(tree.status.children_ids, [scan.id()]);
    assert_eq!(tree.children[0].status.parent_id, Some(build.id()));
    assert_eq!(tree.children[0].children[0].status.id, range.id());
    assert!(registry.tree(Uuid::nil()).is_none());
}

#[test]
fn an_abort_reaches_the_parts_and_not_the_whole() {
    let registry = TaskRegistry::default();
    let whole = registry.start(spec("repair"));
    let (one, other) = (whole.child(spec("one")), whole.child(spec("other")));
    assert!(registry.abort(one.id()).unwrap().abort_requested);
    assert!(one.abort_requested() && !other.abort_requested() && !whole.abort_requested());
    registry.abort(whole.id()).unwrap();
    assert!(other.abort_requested());
    let id = whole.id();
    whole.stopped();
    let status = registry.status(id).unwrap();
    assert_eq!(
        (status.state, status.error),
        (CompletionState::Aborted, None)
    );
}

#[test]
fn a_fixed_task_refuses_to_abort_and_an_ended_one_stays_as_it_ended() {
    let registry = TaskRegistry::default();
    let fixed = registry.start(TaskSpec {
        abortable: false,
        ..spec("scan")
    });
    assert_eq!(registry.abort(fixed.id()), Err(AbortError::NotAbortable));
    assert!(!fixed.abort_requested());
    assert_eq!(registry.abort(Uuid::nil()), Err(AbortError::Missing));
    let task = registry.start(spec("repair"));
    let id = task.id();
    task.done();
    let status = registry.abort(id).unwrap();
    assert_eq!(
        (status.state, status.abort_requested),
        (CompletionState::Done, false)
    );
}

#[test]
fn a_task_whose_owner_goes_away_has_been_aborted() {
    let registry = TaskRegistry::default();
    let task = registry.start(spec("scan"));
    let id = task.id();
    drop(task);
    let status = registry.status(id).unwrap();
    assert_eq!(status.state, CompletionState::Aborted);
    assert_eq!(status.error.as_deref(), Some("given up before its end"));
}

#[test]
fn another_thread_reports_progress_until_the_task_is_aborted_or_dropped() {
    let registry = TaskRegistry::default();
    let (one, other) = (registry.start(spec("one")), registry.start(spec("other")));
    let (of_one, of_other) = (one.progress_reporter(), other.progress_reporter());
    of_one.set_completed(5);
    assert_eq!(one.status().progress_completed, 5);
    assert!(of_one.is_wanted() && of_other.is_wanted());
    registry.abort(one.id()).unwrap();
    drop(other);
    assert!(!of_one.is_wanted() && !of_other.is_wanted());
}

#[test]
fn only_the_last_trees_are_kept_and_whole() {
    let registry = TaskRegistry::new(TaskRetention {
        trees_of_a_kind_max: 2,
        trees_of_a_scope_max: 2,
        ended_children_max: 8,
    });
    let running = registry.start(spec("running"));
    let entities = || {
        let of = |status: TaskSnapshot| status.scope.entity.unwrap_or_default();
        let list = registry.list(false).into_iter().map(of);
        list.collect::<Vec<String>>()
    };
    for entity in ["a", "b", "c"] {
        let task = registry.start(on(entity));
        task.child(spec("part")).done();
        task.done();
    }
    assert_eq!(entities(), ["", "b", "c"]);
    assert_eq!(registry.list(true).len(), 5);
    // The end of another kind of task leaves all of these.
    drop(running);
    assert_eq!(entities(), ["", "b", "c"]);
    assert_eq!(registry.book.known().order.len(), 5);
}

#[test]
fn a_repeated_task_leaves_its_last_few_and_those_that_failed() {
    let registry = TaskRegistry::new(TaskRetention {
        trees_of_a_kind_max: 100,
        trees_of_a_scope_max: 2,
        ended_children_max: 8,
    });
    registry.start(on("seldom")).done();
    registry.start(on("often")).failed("x");
    for _ in 0..1000 {
        registry.start(on("often")).done();
    }
    let list = registry.list(true);
    let ends: Vec<_> = list
        .iter()
        .map(|status| (status.scope.entity.as_deref().unwrap_or(""), status.state))
        .collect();
    assert_eq!(
        ends,
        [
            ("seldom", CompletionState::Done),
            ("often", CompletionState::Failed),
            ("often", CompletionState::Done),
            ("often", CompletionState::Done),
        ]
    );
    assert_eq!(list[3].sequence_number, 1002, "the last one");
}

#[test]
fn of_many_parts_the_last_are_kept_and_those_that_failed() {
    let registry = TaskRegistry::new(TaskRetention {
        trees_of_a_kind_max: 2,
        trees_of_a_scope_max: 2,
        ended_children_max: 3,
    });
    let whole = registry.start(spec("whole"));
    let running = whole.child(spec("running"));
    whole.child(spec("failed")).failed("x");
    for _ in 0..100 {
        let part = whole.child(spec("part"));
        part.child(spec("part of a part")).done();
        part.done();
    }
    let status = whole.status();
    assert_eq!(status.children_left_out, 97);
    assert_eq!(status.children_ids.len(), 5);
    let tree = registry.tree(whole.id()).unwrap();
    assert_eq!(tree.children.len(), 5, "what is named is there: {tree:#?}");
    assert_eq!(registry.list(true).len(), 1 + 2 + 2 * 3);
    assert!(registry.status(running.id()).is_some());
}

#[test]
fn parts_of_what_is_no_longer_kept_are_not_kept_either() {
    let registry = TaskRegistry::new(TaskRetention {
        trees_of_a_kind_max: 0,
        trees_of_a_scope_max: 2,
        ended_children_max: 3,
    });
    let whole = registry.start(spec("whole"));
    let part = whole.child(spec("part"));
    whole.done();
    part.child(spec("part of a part")).done();
    part.done();
    assert_eq!(registry.list(true), []);
}

#[tokio::test]
async fn waiting_ends_with_the_task_or_with_patience() {
    let registry = TaskRegistry::default();
    let task = registry.start(spec("scan"));
    let id = task.id();
    let status = registry.wait(id, Duration::from_millis(5)).await.unwrap();
    assert_eq!(status.state, CompletionState::Running);
    let (status, ()) = tokio::join!(registry.wait(id, Duration::from_secs(20)), async {
        tokio::task::yield_now().await;
        task.done();
    });
    assert_eq!(status.unwrap().state, CompletionState::Done);
    assert!(registry.wait(Uuid::nil(), Duration::ZERO).await.is_none());
}
