mod pairs;

use std::path::Path;
use std::pin::pin;

use cpu_scheduler::{CpuScheduler, Permit, WorkClass};
use index::Quantization;
use test_support::eventually;

use super::*;
use crate::compute::INLINE_WITHIN;
use crate::database::LogHead;
use crate::identity::IndexIdentity;
use crate::indexes::IndexSearch;
use crate::indexes::tests::{identity, in_memory};
use crate::message::MESSAGES_MAX;
use crate::metrics::ServiceMetrics;
use crate::observed::{IndexableValue, TimestampedValue};
use crate::options::IndexesOptions;

/// The limit for the wakings of an index that has nothing to do, in ten minutes.
const IDLE_WAKINGS_MAX: u64 = 8;

/// The test runs on one thread with simulated time, which goes on when no task has anything to do.
#[tokio::test(start_paused = true)]
async fn an_idle_index_wakes_no_task() {
    let world = World::start();
    let issue = world.sequencer.issue();
    let batch = world.batch(&issue, &[("a", vector(1.0))]);
    world.rereads.send(IndexMessage::Rows(batch)).await.unwrap();
    let (answer, taken_in) = oneshot::channel();
    world
        .rereads
        .send(IndexMessage::Marker(answer))
        .await
        .unwrap();
    taken_in.await.unwrap();
    let begun = std::time::Instant::now();
    while world.index.content.fresh_bytes() > 0 {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the graph takes the row"
        );
        tokio::task::yield_now().await;
    }
    assert!(world.index.tending.wakings() > 0, "it is to be tended");
    let metrics = tokio::runtime::Handle::current().metrics();
    let before = metrics.worker_park_count(0);
    // Time is simulated, so that this takes none.
    tokio::time::sleep(Duration::from_secs(600)).await;
    let wakings = metrics.worker_park_count(0) - before;
    assert!(wakings <= IDLE_WAKINGS_MAX, "{wakings}");
}

struct World {
    index: Arc<IndexHandle>,
    sequencer: Arc<ReadSequencer>,
    rereads: mpsc::Sender<IndexMessage>,
    scan: Option<mpsc::Sender<RowBatch>>,
    scanned: oneshot::Receiver<()>,
    hints: mpsc::Receiver<HintMessage>,
    memory: Arc<ProcessMemory>,
    turns: CpuScheduler,
    _saves: mpsc::Sender<SaveRequest>,
}

impl World {
    fn start() -> World {
        World::start_with(identity("idx"), &in_memory())
    }

    /// Starts with full vectors in a file of this directory.
    fn start_in(directory: &Path) -> World {
        let mut identity = identity("idx");
        // If codes hold the full vectors, there is no file. These codes don't.
        identity.options.vector().quantization = Quantization::Bf16;
        let indexes = IndexesOptions {
            directory: directory.to_owned(),
            ..IndexesOptions::default()
        };
        World::start_with(identity, &indexes)
    }

    fn start_with(identity: IndexIdentity, indexes: &IndexesOptions) -> World {
        let index = handle(identity, indexes);
        let sequencer = Arc::<ReadSequencer>::default();
        let (hint_sender, hints) = mpsc::channel(HINTS);
        let (rereads, reread_receiver) = mpsc::channel(MESSAGES_MAX);
        let (scan, scan_receiver) = mpsc::channel(MESSAGES_MAX);
        let (scanned_sender, scanned) = oneshot::channel();
        let memory = Arc::<ProcessMemory>::default();
        let turns = CpuScheduler::of_threads(THREADS);
        let applier = IndexWriter::new(
            TimeSource::default(),
            index.clone(),
            CpuExecutor::new(turns.clone(), INLINE_WITHIN),
            sequencer.clone(),
            hint_sender,
            memory.clone(),
            indexes.fresh_bytes_max,
        );
        let (saves, save_receiver) = mpsc::channel(1);
        tokio::spawn(applier.run(
            reread_receiver,
            scan_receiver,
            save_receiver,
            scanned_sender,
        ));
        World {
            index,
            sequencer,
            rereads,
            scan: Some(scan),
            scanned,
            hints,
            memory,
            turns,
            _saves: saves,
        }
    }

    fn key(&self, key: &str) -> PrimaryKey {
        self.index.identity.keys.encode([key.as_bytes()])
    }

    fn batch(&self, issue: &Arc<InFlightRead>, rows: &[(&str, ReadCell)]) -> RowBatch {
        RowBatch {
            issue: issue.clone(),
            rows: rows
                .iter()
                .map(|(key, cell)| (self.key(key), cell.clone()))
                .collect(),
            noticed_us: vec![0; rows.len()],
        }
    }

    async fn scan(&self, issue: &Arc<InFlightRead>, rows: &[(&str, ReadCell)]) {
        let batch = self.batch(issue, rows);
        self.scan.as_ref().unwrap().send(batch).await.unwrap();
    }

    async fn reread(&self, issue: &Arc<InFlightRead>, rows: &[(&str, ReadCell)]) {
        let batch = self.batch(issue, rows);
        self.rereads.send(IndexMessage::Rows(batch)).await.unwrap();
    }

    async fn settle(&self) {
        let (answer, settled) = oneshot::channel();
        self.rereads
            .send(IndexMessage::Marker(answer))
            .await
            .unwrap();
        settled.await.unwrap();
    }

    /// Keeps the graph from taking anything in until the result is dropped.
    fn hold_drain(&self) -> [Permit; THREADS] {
        [(); THREADS].map(|()| self.turns.try_acquire(WorkClass::Ingest).unwrap())
    }

    async fn read_again(&self, rows: &[(&str, ReadCell)]) {
        let issue = self.sequencer.issue();
        self.reread(&issue, rows).await;
    }

    /// Waits until the graph has all changes that have come.
    async fn drained(&self) {
        self.settle().await;
        let is_so = async || self.index.content.fresh_bytes() == 0;
        eventually("nothing is fresh any more", is_so).await;
    }

    /// The rows that a search from the origin finds, nearest first.
    fn found(&self) -> Vec<(String, f32)> {
        let found = self
            .index
            .content
            .search(&IndexSearch::new(&[0.0, 0.0], 100))
            .unwrap();
        let rows = store_api::binary::AnswerRows::read(found.binary()).unwrap();
        let keys = rows.columns[0].values.iter();
        let keys = keys.map(|key| String::from_utf8(key.to_vec()).unwrap());
        keys.zip(rows.distances).collect()
    }
}

const HINTS: usize = 2;

const FRESH_BYTES_MAX: usize = 1 << 20;

const THREADS: usize = 2;

fn handle(identity: IndexIdentity, indexes: &IndexesOptions) -> Arc<IndexHandle> {
    let metrics = ServiceMetrics::new().index(&identity.name);
    Arc::new(IndexHandle::new(identity, indexes, metrics).unwrap())
}

fn vector(x: f32) -> ReadCell {
    expiring(x, None)
}

fn expiring(x: f32, expires_s: Option<u32>) -> ReadCell {
    ReadCell::Value(TimestampedValue {
        filters: Vec::new(),
        filters_change_s: None,
        value: IndexableValue::Vector(vec![x, 0.0]),
        written_us: 1,
        expires_s,
    })
}

fn rows(rows: &[(&str, f32)]) -> Vec<(String, f32)> {
    rows.iter()
        .map(|(key, distance)| ((*key).to_owned(), *distance))
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn rereads_stand_against_an_older_scan() {
    let mut world = World::start();
    let scan = world.sequencer.issue();
    let reread = world.sequencer.issue();
    world
        .reread(&reread, &[("gone", ReadCell::Null), ("new", vector(2.0))])
        .await;
    world.settle().await;
    assert_eq!(world.found(), rows(&[("new", 4.0)]));
    world
        .scan(
            &scan,
            &[
                ("gone", vector(1.0)),
                ("new", vector(9.0)),
                ("old", vector(3.0)),
            ],
        )
        .await;
    drop((scan, reread));
    world.scan = None;
    (&mut world.scanned).await.unwrap();
    assert_eq!(world.found(), rows(&[("new", 4.0), ("old", 9.0)]));
    assert_eq!(world.index.metrics.inserted.get(), 2);
    assert_eq!(world.index.metrics.lag.get_sample_count(), 5);
    assert_eq!(world.sequencer.oldest_in_flight(), 3);
    // Ids are used again, and the changes of one batch are made in order.
    for round in 0..20u8 {
        let issue = world.sequencer.issue();
        world.reread(&issue, &[("new", ReadCell::Null)]).await;
        world.drained().await;
        let issue = world.sequencer.issue();
        world
            .reread(&issue, &[("new", vector(f32::from(round)))])
            .await;
    }
    world.settle().await;
    assert_eq!(world.found(), rows(&[("old", 9.0), ("new", 361.0)]));
    assert!(world.index.content.keys().memory_bytes() < 1000);
}

#[tokio::test]
async fn the_end_of_the_scan_is_seen_while_rereads_keep_coming() {
    // The number is larger than what the runtime lets the task take in at a stretch.
    const REREADS: usize = 1000;
    let sequencer = Arc::<ReadSequencer>::default();
    let (hints, _hints) = mpsc::channel(HINTS);
    let (rereads, reread_receiver) = mpsc::channel(REREADS);
    for _ in 0..REREADS {
        let batch = RowBatch {
            issue: sequencer.issue(),
            rows: Vec::new(),
            noticed_us: Vec::new(),
        };
        rereads.try_send(IndexMessage::Rows(batch)).unwrap();
    }
    let (scan, scan_receiver) = mpsc::channel(MESSAGES_MAX);
    drop(scan);
    let (scanned_sender, mut scanned) = oneshot::channel();
    let applier = IndexWriter::new(
        TimeSource::default(),
        handle(identity("idx"), &in_memory()),
        CpuExecutor::new(CpuScheduler::of_threads(1), INLINE_WITHIN),
        sequencer,
        hints,
        Arc::default(),
        FRESH_BYTES_MAX,
    );
    let (_saves, save_receiver) = mpsc::channel(1);
    let run = applier.run(
        reread_receiver,
        scan_receiver,
        save_receiver,
        scanned_sender,
    );
    tokio::pin!(run);
    assert!(futures::poll!(&mut run).is_pending());
    assert!(rereads.capacity() < REREADS, "some are left");
    scanned.try_recv().unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn a_row_that_can_not_be_indexed_leaves_the_index() {
    let world = World::start();
    let issue = world.sequencer.issue();
    world
        .reread(&issue, &[("a", vector(1.0)), ("b", vector(2.0))])
        .await;
    let issue = world.sequencer.issue();
    let unusable = ReadCell::Unusable(UnindexableValue::NotFinite { position: 0 });
    world.reread(&issue, &[("a", unusable)]).await;
    world.settle().await;
    assert_eq!(world.found(), rows(&[("b", 4.0)]));
    assert_eq!(world.index.metrics.rejected.get(), 1);
    assert_eq!(world.index.metrics.removed.get(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_change_do_not_say_that_there_is_room() {
    let (hints, _hints) = mpsc::channel(HINTS);
    let memory = Arc::<ProcessMemory>::default();
    let mut applier = IndexWriter::new(
        TimeSource::default(),
        handle(identity("idx"), &in_memory()),
        CpuExecutor::new(CpuScheduler::of_threads(1), INLINE_WITHIN),
        Arc::default(),
        hints,
        memory.clone(),
        FRESH_BYTES_MAX,
    );
    let mut take_in = async |name: &str, x| {
        let batch = RowBatch {
            issue: applier.sequencer.issue(),
            rows: vec![(
                applier.index.identity.keys.encode([name.as_bytes()]),
                vector(x),
            )],
            noticed_us: Vec::new(),
        };
        applier.take_in(batch);
        applier.drain_all().await.unwrap();
        applier.room.is_there
    };
    assert!(take_in("a", 1.0).await);
    memory.note(2, 1);
    assert!(!take_in("b", 2.0).await);
    assert!(!take_in("a", 3.0).await, "it has changed");
    memory.note(1, 1 << 20);
    assert!(take_in("b", 2.0).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_rows_are_named_as_room_comes() {
    let mut world = World::start();
    let issue = world.sequencer.issue();
    let names = ["a", "b", "c"];
    let expired = names.map(|name| (name, expiring(1.0, Some(1))));
    world.reread(&issue, &expired).await;
    let mut named = Vec::new();
    for _ in names {
        let hint = tokio::time::timeout(Duration::from_secs(10), world.hints.recv());
        match hint.await.unwrap().unwrap() {
            HintMessage::Hint(hint) => named.push(hint.target),
            other => panic!("only hints were sent: {other:?}"),
        }
    }
    for name in names {
        assert!(named.contains(&HintTarget::Row(world.key(name))), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn many_rows_that_expire_at_once_are_named_as_fast_as_they_are_taken() {
    // The rows are far more than fit into the channel.
    const ROWS: usize = 100 * HINTS;
    let mut world = World::start();
    let issue = world.sequencer.issue();
    let names: Vec<String> = (0..ROWS).map(|row| row.to_string()).collect();
    let rows = names.iter();
    let rows: Vec<_> = rows
        .map(|name| (name.as_str(), expiring(1.0, Some(1))))
        .collect();
    world.reread(&issue, &rows).await;
    let all = async {
        for _ in 0..ROWS {
            world.hints.recv().await.expect("a row is named");
        }
    };
    let all = tokio::time::timeout(Duration::from_secs(20), all);
    all.await.expect("not some at each look");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_without_room_are_tried_again_until_there_is() {
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("missing");
    let mut world = World::start_in(&directory);
    let issue = world.sequencer.issue();
    world
        .scan(&issue, &[("a", vector(1.0)), ("b", vector(2.0))])
        .await;
    drop(issue);
    world.scan = None;
    (&mut world.scanned).await.unwrap();
    let status = world.index.status(Duration::ZERO);
    assert_eq!((status.count, status.rows_without_room), (0, 2));
    // One row is tried again and again, although no write names it.
    for _ in 0..2 {
        let hint = tokio::time::timeout(Duration::from_secs(10), world.hints.recv());
        let Some(HintMessage::Hint(hint)) = hint.await.unwrap() else {
            panic!("a row is named");
        };
        let names = [("a", 1.0), ("b", 2.0)];
        let (name, x) = names
            .into_iter()
            .find(|(name, _)| hint.target == HintTarget::Row(world.key(name)))
            .unwrap();
        let issue = world.sequencer.issue();
        world.reread(&issue, &[(name, vector(x))]).await;
        world.drained().await;
        assert_eq!(world.found(), []);
        assert_eq!(world.index.rows_without_room(), 2);
        assert_eq!(world.index.metrics.inserted.get(), 0);
    }

    std::fs::create_dir(&directory).unwrap();
    let issue = world.sequencer.issue();
    let (c, b) = (("c", vector(3.0)), ("b", vector(4.0)));
    world.reread(&issue, &[c, b, ("a", ReadCell::Null)]).await;
    world.drained().await;
    assert_eq!(world.found(), rows(&[("c", 9.0), ("b", 16.0)]));
    assert_eq!(world.index.metrics.inserted.get(), 2);
    // Nothing is lost, and no row is left waiting.
    let is_so = async || world.index.rows_without_room() == 0;
    eventually("no row waits", is_so).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_the_memory_limit_rows_wait_and_come_in_when_there_is_room() {
    let mut world = World::start();
    let issue = world.sequencer.issue();
    world.reread(&issue, &[("a", vector(1.0))]).await;
    world.settle().await;
    world.memory.note(2, 1);
    let issue = world.sequencer.issue();
    let (b, c) = (("b", vector(2.0)), ("c", vector(3.0)));
    world.reread(&issue, &[("a", vector(0.5)), b, c]).await;
    world.settle().await;
    assert_eq!(world.found(), rows(&[("a", 0.25)]), "what is in may change");

    // A row that goes makes room for one that comes.
    let issue = world.sequencer.issue();
    world.reread(&issue, &[("a", ReadCell::Null)]).await;
    let issue = world.sequencer.issue();
    world
        .reread(&issue, &[("d", vector(4.0)), ("e", vector(5.0))])
        .await;
    world.settle().await;
    assert_eq!(world.found(), rows(&[("d", 16.0)]));

    world.memory.note(1, 1 << 20);
    tokio::time::timeout(Duration::from_secs(20), async {
        while world.found().len() < 4 {
            let Some(HintMessage::Hint(hint)) = world.hints.recv().await else {
                panic!("a row is named");
            };
            let names = [("b", 2.0), ("c", 3.0), ("e", 5.0)];
            let (name, x) = names
                .into_iter()
                .find(|(name, _)| hint.target == HintTarget::Row(world.key(name)))
                .unwrap();
            let issue = world.sequencer.issue();
            world.reread(&issue, &[(name, vector(x))]).await;
            world.settle().await;
        }
    })
    .await
    .unwrap();
    let all = [("b", 4.0), ("c", 9.0), ("d", 16.0), ("e", 25.0)];
    assert_eq!(world.found(), rows(&all));
}

#[tokio::test(flavor = "multi_thread")]
async fn searches_see_what_was_read_before_the_graph_has_it() {
    let world = World::start();
    world.read_again(&[("old", vector(1.0))]).await;
    world.drained().await;
    let held = world.hold_drain();
    world
        .read_again(&[("new", vector(2.0)), ("old", vector(4.0))])
        .await;
    world.settle().await;
    assert_eq!(world.found(), rows(&[("new", 4.0), ("old", 16.0)]));
    world.read_again(&[("old", vector(3.0))]).await;
    world.read_again(&[("new", ReadCell::Null)]).await;
    world.settle().await;
    assert_eq!(world.found(), rows(&[("old", 9.0)]));
    world
        .read_again(&[("old", ReadCell::Null), ("other", vector(5.0))])
        .await;
    world.read_again(&[("new", vector(6.0))]).await;
    world.settle().await;
    let expected = rows(&[("other", 25.0), ("new", 36.0)]);
    assert_eq!(world.found(), expected);
    assert!(world.index.content.fresh_bytes() > 0);
    assert_eq!(world.index.status(Duration::ZERO).count, 2);
    drop(held);
    world.drained().await;
    assert_eq!(world.found(), expected);
    // Ids of rows that went are used again.
    for round in 0..20u8 {
        let name = round.to_string();
        world.read_again(&[(&name, vector(1.0))]).await;
        world.settle().await;
        assert_eq!(world.found().len(), 3);
        world.read_again(&[(&name, ReadCell::Null)]).await;
        world.drained().await;
        assert_eq!(world.found(), expected);
    }
    assert!(world.index.content.keys().ids() < 10);
    let metrics = &world.index.metrics;
    assert_eq!(metrics.inserted.get() - metrics.removed.get(), 2);
    assert_eq!(metrics.updated.get(), 2);
}

#[derive(Default)]
struct Head(Arc<()>);

impl LogHead for Head {
    fn acknowledged_us(&self) -> i64 {
        0
    }

    fn slow_writers(&self) -> Box<dyn Send> {
        Box::new(self.0.clone())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn fresh_changes_are_bounded_and_writers_are_slowed_before() {
    let indexes = IndexesOptions {
        fresh_bytes_max: 4000,
        ..in_memory()
    };
    let world = World::start_with(identity("idx"), &indexes);
    let head = Arc::new(Head::default());
    world.index.freshness.set_head(head.clone());
    world.index.set_state(IndexState::Serving);
    let is_slowed = || Arc::strong_count(&head.0) > 1;
    let held = world.hold_drain();
    world.read_again(&[("first", vector(0.0))]).await;
    world.settle().await;
    assert!(!is_slowed());
    let mut sent = 1;
    let names: Vec<String> = (0..500).map(|row| row.to_string()).collect();
    'rows: for name in &names {
        let issue = world.sequencer.issue();
        let batch = world.batch(&issue, &[(name, vector(1.0))]);
        let mut send = pin!(world.rereads.send(IndexMessage::Rows(batch)));
        let within = Duration::from_millis(200);
        let mut waited = 0;
        while tokio::time::timeout(within, send.as_mut()).await.is_err() {
            // The applier may just be slow.
            if is_slowed() && world.index.content.fresh_bytes() >= 4000 {
                break 'rows;
            }
            waited += 1;
            assert!(
                waited < 300,
                "{sent} rows are taken, and writers are not slowed"
            );
        }
        sent += 1;
    }
    assert!(sent < 200, "{sent}");
    let bytes = world.index.content.fresh_bytes();
    assert!((4000..4400).contains(&bytes), "{bytes}");
    drop(held);
    world.drained().await;
    assert_eq!(world.index.status(Duration::ZERO).count, sent);
    assert!(!is_slowed());
}
