use super::*;

fn made(index: &str, id: &str) -> IndexCreation {
    IndexCreation {
        name: IndexName {
            keyspace: "ks".into(),
            index: index.into(),
        },
        id: id.into(),
    }
}

fn index(index: &str) -> IndexCreation {
    made(index, "1")
}

fn every(seconds: u64) -> PeriodicRepair {
    PeriodicRepair {
        interval: Duration::from_secs(seconds),
        parallel: 0,
        intensity: 1,
    }
}

#[test]
fn due_indexes_come_in_the_order_of_their_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let schedules = IndexSchedules::open(
        directory.path(),
        Some(every(100)),
        None,
        TimeSource::default(),
    );
    let indexes = [index("a"), index("b")];
    assert_eq!(schedules.due(&indexes[..1], 1000), None, "first seen");
    assert_eq!(schedules.due(&indexes, 1050), None);
    assert_eq!(
        schedules.due(&indexes, 1150),
        Some((index("a"), every(100)))
    );
    schedules.began(&index("a"), 1150);
    // A restart changes nothing.
    let schedules = IndexSchedules::open(
        directory.path(),
        Some(every(100)),
        None,
        TimeSource::default(),
    );
    assert_eq!(
        schedules.due(&indexes, 1250),
        Some((index("b"), every(100)))
    );
    schedules.began(&index("b"), 1250);
    assert_eq!(
        schedules.due(&indexes, 1251),
        Some((index("a"), every(100)))
    );
    let without = IndexSchedules::open(directory.path(), None, None, TimeSource::default());
    assert_eq!(without.due(&indexes, 9999), None);
}

#[test]
fn an_update_holds_for_good() {
    let directory = tempfile::tempdir().unwrap();
    let open =
        |default| IndexSchedules::open(directory.path(), default, None, TimeSource::default());
    let nothing = PeriodicRepairUpdate::default();
    let refused = open(None).update(&index("a"), nothing);
    assert!(matches!(refused, Err(ScheduleError::NoInterval(_))));
    let daily = PeriodicRepairUpdate {
        interval: Some(Some(Duration::from_secs(86_400))),
        ..nothing
    };
    let updated = open(None).update(&index("daily"), daily).unwrap();
    assert_eq!(updated, Some(every(86_400)), "gently");
    let faster = PeriodicRepairUpdate {
        intensity: Some(4),
        ..nothing
    };
    let updated = open(Some(every(100))).update(&index("a"), faster).unwrap();
    let expected = PeriodicRepair {
        intensity: 4,
        ..every(100)
    };
    assert_eq!(updated, Some(expected));
    assert_eq!(open(Some(every(7))).of(&index("a")), Some(expected));
    assert_eq!(open(Some(every(7))).of(&index("b")), Some(every(7)));
    let never = PeriodicRepairUpdate {
        interval: Some(None),
        ..nothing
    };
    assert_eq!(
        open(Some(every(7))).update(&index("a"), never).unwrap(),
        None
    );
    assert_eq!(open(Some(every(7))).of(&index("a")), None);
}

#[test]
fn an_update_that_can_not_be_stored_is_not_in_effect() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let schedules = IndexSchedules::open(
        &file.join("below"),
        Some(every(100)),
        None,
        TimeSource::default(),
    );
    let faster = PeriodicRepairUpdate {
        intensity: Some(4),
        ..PeriodicRepairUpdate::default()
    };
    let error = schedules
        .update(&index("a"), faster)
        .unwrap_err()
        .to_string();
    assert!(error.contains(FILE), "{error}");
    assert_eq!(schedules.of(&index("a")), Some(every(100)));
}

#[test]
fn a_file_that_makes_no_sense_counts_as_none() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(FILE), "{").unwrap();
    let schedules = IndexSchedules::open(
        directory.path(),
        Some(every(100)),
        None,
        TimeSource::default(),
    );
    assert_eq!(schedules.of(&index("a")), Some(every(100)));
}

const NEVER: PeriodicRepairUpdate = PeriodicRepairUpdate {
    interval: Some(None),
    parallel: None,
    intensity: None,
};

#[test]
fn an_index_inherits_nothing_from_one_that_had_its_name() {
    let directory = tempfile::tempdir().unwrap();
    let schedules = IndexSchedules::open(
        directory.path(),
        Some(every(100)),
        None,
        TimeSource::default(),
    );
    schedules.update(&index("a"), NEVER).unwrap();
    let later = [made("a", "2")];
    assert_eq!(schedules.of(&later[0]), Some(every(100)));
    assert_eq!(schedules.due(&later, 1000), None, "first seen");
    let due = Some((later[0].clone(), every(100)));
    assert_eq!(schedules.due(&later, 1100), due);
}

#[test]
fn an_entry_without_a_creation_is_of_the_first_index_that_is_seen() {
    let directory = tempfile::tempdir().unwrap();
    let before =
        r#"{"ks.a": {"own": {"interval_s": null, "parallel": 0, "intensity": 1}, "last_s": 7}}"#;
    std::fs::write(directory.path().join(FILE), before).unwrap();
    let schedules = IndexSchedules::open(
        directory.path(),
        Some(every(100)),
        None,
        TimeSource::default(),
    );
    assert_eq!(schedules.of(&index("a")), None);
    assert_eq!(schedules.due(&[index("a")], 1000), None);
    assert_eq!(schedules.of(&index("a")), None);
    assert_eq!(schedules.of(&made("a", "2")), Some(every(100)));
}

#[test]
fn entries_of_dropped_indexes_are_forgotten_in_time() {
    let directory = tempfile::tempdir().unwrap();
    let schedules = IndexSchedules::open(directory.path(), None, None, TimeSource::default());
    for name in ["a", "b", "c"] {
        schedules.update(&index(name), NEVER).unwrap();
    }
    let gone_s = GONE_AFTER.as_secs();
    let there = |names: &[&str], now_s| {
        let names: Vec<String> = names.iter().map(|name| format!("ks.{name}")).collect();
        schedules.forget_missing(&names, now_s);
        let reopened = IndexSchedules::open(directory.path(), None, None, TimeSource::default());
        let kept: Vec<String> = reopened.kept().into_keys().collect();
        kept.join(" ")
    };
    assert_eq!(there(&["a"], 1000), "ks.a ks.b ks.c");
    assert_eq!(there(&["a", "c"], 1500), "ks.a ks.b ks.c", "one is back");
    assert_eq!(there(&["a"], 1000 + gone_s - 1), "ks.a ks.b ks.c");
    assert_eq!(there(&["a"], 1000 + gone_s), "ks.a ks.c");
}

#[test]
fn reads_wait_for_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let schedules = IndexSchedules::open(
        directory.path(),
        Some(every(100)),
        None,
        TimeSource::default(),
    );
    let _writing = schedules.changing();
    assert_eq!(schedules.of(&index("a")), Some(every(100)));
}

#[test]
fn an_update_that_changes_nothing_writes_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let schedules = IndexSchedules::open(directory.path(), None, None, TimeSource::default());
    schedules.update(&index("a"), NEVER).unwrap();
    let file = directory.path().join(FILE);
    std::fs::remove_file(&file).unwrap();
    schedules.update(&index("a"), NEVER).unwrap();
    schedules.due(&[index("a")], 1000);
    schedules.forget_missing(&["ks.a".to_owned()], 1000);
    assert!(!file.exists());
}

#[test]
fn behind_gateways_something_is_repaired_unless_it_is_said_otherwise() {
    let directory = tempfile::tempdir().unwrap();
    let daily = Some(PeriodicRepair::DAILY);
    let first = index("a");
    let schedules = IndexSchedules::open(directory.path(), None, daily, TimeSource::default());
    assert_eq!(schedules.of(&first), None);
    schedules.set_behind_gateways(true);
    assert_eq!(schedules.of(&first), daily);
    let never = PeriodicRepairUpdate {
        interval: Some(None),
        ..PeriodicRepairUpdate::default()
    };
    schedules.update(&first, never).unwrap();
    assert_eq!(schedules.of(&first), None);
    let set = IndexSchedules::open(
        directory.path(),
        Some(every(100)),
        daily,
        TimeSource::default(),
    );
    set.set_behind_gateways(true);
    assert_eq!(set.of(&index("b")), Some(every(100)));
}
