use super::*;

fn name(index: &str) -> IndexName {
    IndexName {
        keyspace: "ks".into(),
        index: index.into(),
    }
}

fn every(seconds: u64) -> RepairSchedule {
    RepairSchedule {
        interval: Duration::from_secs(seconds),
        parallel: 0,
        intensity: 1,
    }
}

#[test]
fn what_is_due_comes_in_the_order_of_its_waiting() {
    let directory = tempfile::tempdir().unwrap();
    let schedules = Schedules::open(directory.path(), Some(every(100)));
    let names = [name("a"), name("b")];
    assert_eq!(schedules.due(&names[..1], 1000), None, "first seen");
    assert_eq!(schedules.due(&names, 1050), None);
    assert_eq!(schedules.due(&names, 1150), Some((name("a"), every(100))));
    schedules.began(&name("a"), 1150);
    // A restart changes nothing.
    let schedules = Schedules::open(directory.path(), Some(every(100)));
    assert_eq!(schedules.due(&names, 1250), Some((name("b"), every(100))));
    schedules.began(&name("b"), 1250);
    assert_eq!(schedules.due(&names, 1251), Some((name("a"), every(100))));
    let without = Schedules::open(directory.path(), None);
    assert_eq!(without.due(&names, 9999), None);
}

#[test]
fn an_update_holds_for_good() {
    let directory = tempfile::tempdir().unwrap();
    let open = |default| Schedules::open(directory.path(), default);
    let nothing = Update::default();
    let refused = open(None).update(&name("a"), nothing);
    assert!(matches!(refused, Err(ScheduleError::NoInterval(_))));
    let daily = Update {
        interval: Some(Some(Duration::from_secs(86_400))),
        ..nothing
    };
    let updated = open(None).update(&name("daily"), daily).unwrap();
    assert_eq!(updated, Some(every(86_400)), "gently");
    let faster = Update {
        intensity: Some(4),
        ..nothing
    };
    let updated = open(Some(every(100))).update(&name("a"), faster).unwrap();
    let expected = RepairSchedule {
        intensity: 4,
        ..every(100)
    };
    assert_eq!(updated, Some(expected));
    assert_eq!(open(Some(every(7))).of(&name("a")), Some(expected));
    assert_eq!(open(Some(every(7))).of(&name("b")), Some(every(7)));
    let never = Update {
        interval: Some(None),
        ..nothing
    };
    assert_eq!(
        open(Some(every(7))).update(&name("a"), never).unwrap(),
        None
    );
    assert_eq!(open(Some(every(7))).of(&name("a")), None);
}

#[test]
fn what_can_not_be_kept_is_not_in_effect() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("file");
    std::fs::write(&file, "").unwrap();
    let schedules = Schedules::open(&file.join("below"), Some(every(100)));
    let faster = Update {
        intensity: Some(4),
        ..Update::default()
    };
    let error = schedules
        .update(&name("a"), faster)
        .unwrap_err()
        .to_string();
    assert!(error.contains(FILE), "{error}");
    assert_eq!(schedules.of(&name("a")), Some(every(100)));
}

#[test]
fn a_file_that_makes_no_sense_counts_as_none() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join(FILE), "{").unwrap();
    let schedules = Schedules::open(directory.path(), Some(every(100)));
    assert_eq!(schedules.of(&name("a")), Some(every(100)));
}
