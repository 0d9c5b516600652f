//! Tests of the families of the index service.

use super::*;

#[test]
fn series_come_and_go_with_their_index() {
    let metrics = ServiceMetrics::new();
    let before = metrics.registry().text().unwrap();
    assert!(before.contains("annulus_search_shed_total") && !before.contains("index="));
    let name = IndexName {
        keyspace: "ks".into(),
        index: "idx".into(),
    };
    let index = metrics.index(&name);
    index.inserted.inc();
    index.request_latency.observe(0.003);
    metrics.reader(&name, "fine").up.set(1);
    let text = metrics.registry().text().unwrap();
    for line in [
        r#"annulus_index_changes_total{index="idx",keyspace="ks",operation="insert"} 1"#,
        r#"index_modified{index_name="idx",keyspace="ks",operation="insert"} 1"#,
        r#"request_latency_seconds_bucket{index_name="idx",keyspace="ks",le="0.005"} 1"#,
        r#"cdc_reader_up{index_name="idx",keyspace="ks",reader="fine"} 1"#,
    ] {
        assert!(text.contains(line), "{line} not in\n{text}");
    }
    metrics.forget(&name, &["fine".to_owned()]);
    index.inserted.inc();
    assert_eq!(metrics.registry().text().unwrap(), before);
}

#[test]
fn every_older_name_is_of_a_family() {
    let metrics = ServiceMetrics::new();
    metrics.show_counts(&CpuScheduler::of_threads(1), &TaskRegistry::default());
    let described = metrics.registry().described();
    for name in older_names::all() {
        let mut families = described.iter();
        let family = families.find(|family| family.name == name.now);
        assert_eq!(family.and_then(|family| family.older), Some(name));
    }
}

#[test]
fn the_recall_of_an_index_is_shown_from_its_first_check() {
    let metrics = ServiceMetrics::new();
    let name = IndexName {
        keyspace: "ks".into(),
        index: "idx".into(),
    };
    let index = metrics.index(&name);
    index.memory.set("graph", 5);
    index.memory.set("keys", 7);
    assert_eq!(metrics.index_bytes(), 12);
    let shown = || metrics.registry().text().unwrap();
    assert!(!shown().contains("annulus_index_recall_ratio"));
    metrics.set_recall(&name, 0.96, 1_700_000_000);
    let series = r#"annulus_index_recall_ratio{index="idx",keyspace="ks"} 0.96"#;
    assert!(shown().contains(series), "{}", shown());
    metrics.forget(&name, &[]);
    assert!(!shown().contains("annulus_index_recall"));
}
