use std::fs;
use std::path::PathBuf;

use ::tasks::{CompletionState, TaskSnapshot};
use index::FullTextOptions;
use test_support::eventually;

use super::*;
use crate::apply::IndexWriter;
use crate::compute::{CpuExecutor, INLINE_WITHIN};
use crate::identity::{IndexIdentity, StructureOptions};
use crate::indexes::tests::{identity, in_memory};
use crate::indexes::{IndexContent, IndexSearch, StructureQuery};
use crate::items::ReadSequencer;
use crate::memory::ProcessMemory;
use crate::message::{IndexMessage, RowBatch};
use crate::metrics::ServiceMetrics;
use crate::observed::{IndexableValue, ObservedColumn, RawCell, ReadCell, TimestampedValue};
use crate::options::{IndexesOptions, SnapshotOptions};
use crate::present::TimeSource;
use crate::rows::{RowReader, joined};
use crate::snapshot::manifest::Manifest;
use crate::snapshot::open::{ReopenOutcome, ReopenedIndex};

/// An index of some rows and its saver.
struct World {
    saver: IndexSaver,
    work: TaskRegistry,
    sequencer: Arc<ReadSequencer>,
    rereads: mpsc::Sender<IndexMessage>,
    /// The sender to the task that owns the rows. Requests of the saver are passed on to it.
    applier: mpsc::Sender<SaveRequest>,
    asked: mpsc::Receiver<SaveRequest>,
    _directory: tempfile::TempDir,
}

impl World {
    fn start() -> World {
        World::start_with(identity("idx"))
    }

    fn start_with(identity: IndexIdentity) -> World {
        let directory = tempfile::tempdir().unwrap();
        let metrics = ServiceMetrics::new().index(&identity.name);
        let index = Arc::new(IndexHandle::new(identity, &in_memory(), metrics).unwrap());
        let sequencer = Arc::<ReadSequencer>::default();
        let (hints, _) = mpsc::channel(1);
        let applier = IndexWriter::new(
            TimeSource::default(),
            index.clone(),
            CpuExecutor::new(cpu_scheduler::CpuScheduler::of_threads(1), INLINE_WITHIN),
            sequencer.clone(),
            hints.clone(),
            Arc::default(),
            1 << 20,
        );
        let (rereads, reread_receiver) = mpsc::channel(1);
        let (_, scan_receiver) = mpsc::channel(1);
        let (to_applier, save_receiver) = mpsc::channel(1);
        let (scanned, _) = oneshot::channel();
        tokio::spawn(applier.run(reread_receiver, scan_receiver, save_receiver, scanned));
        let indexes = IndexesOptions {
            directory: directory.path().to_owned(),
            ..in_memory()
        };
        let work = TaskRegistry::default();
        let (rows, asked) = mpsc::channel(1);
        World {
            saver: IndexSaver {
                present: TimeSource::default(),
                index,
                snapshots: Arc::new(Snapshots::new(&SnapshotOptions::default(), &indexes)),
                work: work.clone(),
                readers: Vec::new(),
                hints,
                items: rereads.downgrade(),
                rows,
                log: LogFacts {
                    id: uuid::Uuid::from_u128(9),
                    ttl_s: 60,
                    settled: None,
                },
                saved: None,
                position: Duration::ZERO,
                tended: 0,
                heard: 0,
                cancel: CancellationToken::new(),
            },
            work,
            sequencer,
            rereads,
            applier: to_applier,
            asked,
            _directory: directory,
        }
    }

    async fn put_row(&self, key: &str) {
        let cell = TimestampedValue {
            filters: Vec::new(),
            filters_change_s: None,
            value: IndexableValue::Vector(vec![1.0, 2.0]),
            written_us: 1,
            expires_s: None,
        };
        self.put(key, ReadCell::Value(cell)).await;
    }

    /// Puts a row whose indexed column has a value as the database serialises it.
    async fn put_serialised(&self, key: &str, value: &[u8]) {
        let identity = &self.saver.index.identity;
        let reader = RowReader {
            table: identity.table.clone(),
            keys: identity.keys.clone(),
            columns: ObservedColumn::all_of(identity),
        };
        let cell = RawCell {
            value,
            written_us: 1,
            expires_s: None,
        };
        let row = reader.row(&[key.as_bytes()], [Some(cell)]);
        let (_, cell) = joined(&[row], &[0], 0).pop().unwrap();
        self.put(key, cell).await;
    }

    async fn put(&self, key: &str, cell: ReadCell) {
        let keys = &self.saver.index.identity.keys;
        let batch = RowBatch {
            issue: self.sequencer.issue(),
            rows: vec![(keys.encode([key.as_bytes()]), cell)],
            noticed_us: Vec::new(),
        };
        self.rereads.send(IndexMessage::Rows(batch)).await.unwrap();
        let (answer, taken_in) = oneshot::channel();
        self.rereads
            .send(IndexMessage::Marker(answer))
            .await
            .unwrap();
        taken_in.await.unwrap();
        let content = &self.saver.index.content;
        let is_in = async || content.fresh_bytes() == 0;
        eventually("the graph takes the row in", is_in).await;
    }

    /// Saves once. Calls `on` with each request before it is passed on.
    async fn save(&mut self, mut on: impl FnMut(&SaveRequest)) -> Result<(), PersistenceError> {
        let (applier, asked) = (&self.applier, &mut self.asked);
        let pass_on = async {
            while let Some(request) = asked.recv().await {
                on(&request);
                applier.send(request).await.unwrap();
            }
        };
        let save = async {
            self.saver.advance(false).await;
            self.saver.save().await
        };
        tokio::select! {
            saved = save => saved,
            () = pass_on => panic!("the saver has gone"),
        }
    }

    /// Opens the snapshot on the disk.
    fn open(&self) -> Box<ReopenedIndex> {
        let memory = ProcessMemory::default();
        memory.note(1, 1 << 40);
        let saver = &self.saver;
        let (identity, present) = (&saver.index.identity, &saver.present);
        let opened = saver
            .snapshots
            .open(identity, &saver.log, present, &in_memory(), &memory);
        match opened {
            ReopenOutcome::Index(opened) => opened,
            ReopenOutcome::Nothing => panic!("no snapshot"),
        }
    }

    fn tasks(&self) -> Vec<TaskSnapshot> {
        self.work.list(true)
    }

    fn place(&self) -> PathBuf {
        let place = self.saver.snapshots.place(&self.saver.index.identity);
        place.path
    }

    fn stands(&self) -> Option<u64> {
        let manifest = Manifest::read(&self.place()).unwrap();
        manifest.map(|manifest| manifest.generation)
    }

    /// Returns the names in the directory of the index.
    fn entries(&self) -> Vec<String> {
        let entries = fs::read_dir(self.place()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_save_is_a_task_that_counts_what_it_writes() {
    let mut world = World::start();
    world.put_row("a").await;
    world.save(|_| {}).await.unwrap();
    let [task] = &world.tasks()[..] else {
        panic!("one save: {:?}", world.tasks());
    };
    assert_eq!((task.kind, task.state), ("snapshot", CompletionState::Done));
    assert_eq!(task.scope.index.as_deref(), Some("idx"));
    assert_eq!(task.progress_units, "bytes");
    assert_eq!(task.progress_total, Some(task.progress_completed));
    let written = fs::metadata(world.place().join("generation-1/graph")).unwrap();
    let vector = 2 * size_of::<f32>() as u64;
    assert!(
        (vector..written.len()).contains(&task.progress_completed),
        "{task:?}"
    );
    // Nothing has changed, so there is no task to show.
    world.saver.position = Duration::from_secs(7);
    world.save(|_| {}).await.unwrap();
    let position = Manifest::read(&world.place()).unwrap().unwrap().position();
    assert_eq!((world.tasks().len(), position.as_secs()), (1, 7));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_graph_that_was_tended_is_saved_again_though_no_row_has_changed() {
    let mut world = World::start();
    world.put_row("a").await;
    for (has_worked, generation) in [(false, 1), (true, 2), (false, 2)] {
        world.saver.index.tending.done(1, has_worked);
        world.save(|_| {}).await.unwrap();
        assert_eq!(world.stands(), Some(generation));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_snapshot_is_current_until_something_happens_or_its_position_gets_old() {
    let mut world = World::start();
    let applier = world.applier.clone();
    world.saver.rows = applier;
    world.put_row("a").await;
    assert!(!world.saver.is_current().await, "nothing stands");
    world.saver.position = world.saver.present.now();
    world.saver.save().await.unwrap();
    assert!(world.saver.is_current().await);
    world.put_row("b").await;
    assert!(!world.saver.is_current().await);
    let log_ttl = Duration::from_secs(world.saver.log.ttl_s);
    world.saver.position = world.saver.present.now() - log_ttl / 2;
    world.saver.saved = None;
    world.saver.save().await.unwrap();
    assert!(!world.saver.is_current().await, "its position is old");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_save_that_is_aborted_leaves_the_last_snapshot() {
    let mut world = World::start();
    world.put_row("a").await;
    world.save(|_| {}).await.unwrap();
    // The save is aborted before the vectors are written, and after.
    for at_rows in [false, true] {
        world.put_row(if at_rows { "b" } else { "c" }).await;
        let work = world.work.clone();
        let aborted = world.save(|request| {
            let is_time = match request {
                SaveRequest::Begin(_) => !at_rows,
                SaveRequest::Rows { .. } => at_rows,
                _ => false,
            };
            if is_time {
                let running = work.list(false).pop().expect("a task");
                assert!(work.abort(running.id).unwrap().is_abortable);
            }
        });
        let error = aborted.await.unwrap_err();
        assert!(matches!(error, PersistenceError::Aborted), "{error}");
        let task = world.tasks().pop().unwrap();
        assert_eq!((task.state, task.error), (CompletionState::Aborted, None));
        assert_eq!(world.stands(), Some(1));
        assert_eq!(world.entries(), ["current", "generation-1"]);
    }
    let mut told = None;
    world
        .saver
        .report_result(Err(PersistenceError::Aborted), &mut told);
    assert_eq!(world.saver.index.metrics.snapshots.failures.get(), 0);
    world.save(|_| {}).await.unwrap();
    assert_eq!(world.entries(), ["current", "generation-2"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_disk_that_refuses_is_the_error_of_the_task() {
    let mut world = World::start();
    world.put_row("a").await;
    let place = world.place();
    fs::create_dir_all(place.parent().unwrap()).unwrap();
    fs::write(&place, "in the way").unwrap();
    world.save(|_| {}).await.unwrap_err();
    let task = world.tasks().pop().unwrap();
    assert_eq!(task.state, CompletionState::Failed);
    let error = task.error.unwrap();
    assert!(error.contains(&*place.to_string_lossy()), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_has_outgrown_its_snapshot_is_saved_before_its_time() {
    let world = World::start();
    let saver = IndexSaver {
        present: TimeSource::default(),
        index: world.saver.index.clone(),
        snapshots: world.saver.snapshots.clone(),
        work: world.work.clone(),
        readers: Vec::new(),
        hints: world.saver.hints.clone(),
        items: world.saver.items.clone(),
        rows: world.applier.clone(),
        log: world.saver.log,
        saved: None,
        position: Duration::ZERO,
        tended: 0,
        heard: 0,
        cancel: CancellationToken::new(),
    };
    world.put_row("a").await;
    let saving = tokio::spawn(saver.run());
    let stands = async |generation| {
        let is_so = async || world.stands() == Some(generation);
        eventually(&format!("generation {generation} is saved"), is_so).await;
    };
    stands(1).await;
    // The index grows to twice its size, but by too few vectors to be worth a save.
    for row in 1..OUTGROWN_BY {
        world.put_row(&row.to_string()).await;
    }
    world.put_row("one more").await;
    stands(2).await;
    // The index was not saved before that.
    let [_, second] = &world.tasks()[..] else {
        panic!("two saves: {:?}", world.tasks());
    };
    let vectors = (1 + OUTGROWN_BY) * 2 * size_of::<f32>();
    assert!(second.progress_completed >= vectors as u64, "{second:?}");
    world.saver.snapshots.stopping.cancel();
    saving.await.unwrap();
}

/// The keys of the rows that have one of the words, best first.
fn with_words(index: &IndexContent, words: &str) -> Vec<String> {
    let query = full_text::TextQuery::parse(words, FullTextOptions::default()).unwrap();
    let answer = index
        .search(&IndexSearch::of(StructureQuery::Words(&query), 10))
        .unwrap();
    let rows = store_api::binary::AnswerRows::read(answer.binary()).unwrap();
    let keys = rows.columns[0].values.iter();
    keys.map(|key| String::from_utf8(key.to_vec()).unwrap())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_of_another_class_goes_the_way_of_vectors() {
    let mut world = World::start_with(IndexIdentity {
        options: StructureOptions::FullText(FullTextOptions::default()),
        ..identity("idx")
    });
    world.put_serialised("a", b"red green").await;
    world.put_serialised("b", b"green blue").await;
    world.put_serialised("c", b"blue").await;
    world.put_serialised("a", b"red").await;
    world.put("c", ReadCell::Null).await;
    let index = world.saver.index.clone();
    assert_eq!(with_words(&index.content, "blue green"), ["b"]);
    assert_eq!(with_words(&index.content, "red"), ["a"]);
    index.refresh_gauges(Duration::ZERO);
    assert_eq!(
        (index.metrics.size.get(), index.metrics.updated.get()),
        (2, 1)
    );
    world.saver.position = world.saver.present.now();
    world.save(|_| {}).await.unwrap();
    let opened = world.open();
    assert!(!opened.to_reconcile);
    assert_eq!(with_words(&opened.content, "green blue red"), ["b", "a"]);
    let check = || crate::snapshot::check_place(&world.place(), &mut |_| true);
    // Those of the words, that of the rows, and the manifest.
    assert!(check().unwrap() >= 3);
    let generation = world.place().join("generation-1");
    let mut files = fs::read_dir(&generation)
        .unwrap()
        .map(|file| file.unwrap().path());
    let words = files.find(|path| !path.ends_with("rows")).unwrap();
    let mut bytes = fs::read(&words).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&words, bytes).unwrap();
    let damaged = check().unwrap_err().to_string();
    let name = words.file_name().unwrap().to_str().unwrap();
    assert!(damaged.contains(name), "{damaged}");
}
