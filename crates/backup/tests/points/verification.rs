use backup::{BackupError, NoProgress, ProblemKind};

use crate::faulty::FaultyStore;
use crate::setup::{BackedUpServer, open};

#[tokio::test]
async fn each_object_with_a_flipped_byte_is_named() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let point = server.back_up(&location, 0).await.unwrap();
    let sound = location.verify(None, &NoProgress).await.unwrap();
    assert!(sound.is_sound());
    let names = store.names().await;
    // The marker, the manifest, the schema, and four chunks.
    assert_eq!((names.len(), sound.objects, sound.points), (7, 7, 1));
    for name in names {
        let right = store.bytes(&name).await;
        for at in [0, right.len() / 2, right.len() - 1] {
            let mut flipped = right.clone();
            flipped[at] ^= 1;
            store.replace(&name, flipped).await;
            let report = location.verify(None, &NoProgress).await.unwrap();
            let [problem] = &report.problems[..] else {
                panic!("{name}: {:?}", report.problems);
            };
            assert_eq!(
                (&problem.object, problem.kind),
                (&name, ProblemKind::Damaged)
            );
            if name != "annulus-backup.json" {
                assert_eq!(problem.points, std::slice::from_ref(&point.id));
            }
            assert!(problem.to_string().starts_with(&name), "{problem}");
        }
        store.replace(&name, right).await;
    }
}

#[tokio::test]
async fn objects_that_are_too_long_are_named_and_not_read() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    server.back_up(&location, 0).await.unwrap();
    for name in store.names().await {
        // The bound of a manifest is a gibibyte.
        if name.starts_with("meta/") {
            continue;
        }
        let right = store.bytes(&name).await;
        let mut long = right.clone();
        long.resize((8 << 20) + 1_000, 0);
        store.replace(&name, long).await;
        let report = location.verify(None, &NoProgress).await.unwrap();
        let [problem] = &report.problems[..] else {
            panic!("{name}: {:?}", report.problems);
        };
        assert_eq!(problem.object, name);
        assert!(problem.text.contains("at most"), "{problem}");
        store.replace(&name, right).await;
    }
}

#[tokio::test]
async fn each_missing_object_is_named() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let point = server.back_up(&location, 0).await.unwrap();
    for name in store.names().await {
        if !name.starts_with("data/") && !name.starts_with("schema/") {
            continue;
        }
        let right = store.bytes(&name).await;
        store.remove(&name).await;
        let report = location.verify(Some(&point.id), &NoProgress).await.unwrap();
        let problems: Vec<_> = report.problems.iter().collect();
        assert_eq!((problems.len(), &problems[0].object), (1, &name));
        assert_eq!(problems[0].kind, ProblemKind::Missing);
        store.replace(&name, right).await;
    }
}

#[tokio::test]
async fn points_that_do_not_exist_are_named_with_those_that_do() {
    let (server, store) = (BackedUpServer::new(1), FaultyStore::default());
    let location = open(&store).await.unwrap();
    let error = location.point(None).await.unwrap_err();
    assert!(matches!(error, BackupError::NoPoints { .. }), "{error}");
    let point = server.back_up(&location, 0).await.unwrap();
    let other = "20200101T000000Z-00000000".parse().unwrap();
    for error in [
        location.point(Some(&other)).await.unwrap_err(),
        location
            .verify(Some(&other), &NoProgress)
            .await
            .unwrap_err(),
    ] {
        assert!(error.to_string().contains(&point.id.to_string()), "{error}");
    }
}
