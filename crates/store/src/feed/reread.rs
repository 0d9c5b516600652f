//! The task that reads the rows again that the log names.
//!
//! A row of the log is a hint: it names a key, or a partition when a range of it was deleted. The
//! base row is the truth. The task takes hints in batches, drops duplicates, and reads many keys
//! with one statement where the primary key allows it. The batches of a table follow one another:
//! the next one is read only when the rows of the last one are on their way to every index. All
//! indexes of a table share the reads. When one of them goes, the reads in progress are dropped and
//! started again without its column, which may have been dropped from the table as well.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use futures::StreamExt;
use tokio::sync::{mpsc, oneshot};

use super::pages::{TablePager, rows_of};
use crate::database::{SourceDatabase, SourceTable, TablePart};
use crate::identity::TableIdentity;
use crate::items::{InFlightRead, ReadSequencer};
use crate::keys::{KeySchema, PartitionKey, PrimaryKey};
use crate::message::{HintMessage, HintTarget, IndexMessage, RowBatch};
use crate::observed::ObservedColumn;
use crate::rows::{FetchedRow, RowReader, joined};

/// The largest number of hints in a batch.
const BATCH_HINTS: usize = 1024;

/// The largest number of reads in flight.
const READS_MAX: usize = 8;

/// The approximate number of bytes in a page of a partition.
const PAGE_BYTES: usize = 1 << 20;

/// An index that gets the rows that are read.
pub(crate) struct SubscriptionRequest {
    /// The columns that the index observes, that of its vectors first.
    pub columns: Vec<ObservedColumn>,
    /// The number of columns after that of the vectors that must have values.
    pub required: usize,
    /// Whether the index needs changes of only static columns.
    pub takes_static: bool,
    /// The channel to the index. The subscription ends when it is closed.
    pub messages: mpsc::Sender<IndexMessage>,
    /// Answered when the index gets the rows of every hint from now on.
    pub subscribed: oneshot::Sender<()>,
}

/// An index that gets the rows, from then on.
struct IndexSubscription {
    columns: Vec<ObservedColumn>,
    required: usize,
    takes_static: bool,
    messages: mpsc::Sender<IndexMessage>,
}

/// The rows and partitions that the hints of a batch name, without duplicates. They are read in the
/// order of their keys, so that a simulation does the same each time.
#[derive(Default)]
struct HintedRows {
    /// The keys of rows, each with the timestamps of the log rows that name it.
    rows: BTreeMap<PrimaryKey, Vec<i64>>,
    partitions: BTreeSet<PartitionKey>,
}

impl HintedRows {
    fn is_empty(&self) -> bool {
        self.rows.is_empty() && self.partitions.is_empty()
    }
}

/// The task that reads rows of one table again.
pub(crate) struct RowRereader {
    table: TableIdentity,
    keys: KeySchema,
    database: Arc<dyn SourceDatabase>,
    sequencer: Arc<ReadSequencer>,
    subscribers: Vec<IndexSubscription>,
    reads: Arc<dyn SourceTable>,
}

impl RowRereader {
    /// Makes the task, without subscribers.
    pub(crate) fn new(
        table: TableIdentity,
        keys: KeySchema,
        database: Arc<dyn SourceDatabase>,
        sequencer: Arc<ReadSequencer>,
    ) -> RowRereader {
        let reader = RowReader {
            table: table.clone(),
            keys: keys.clone(),
            columns: Vec::new(),
        };
        RowRereader {
            table,
            keys,
            reads: database.rows(&reader, PAGE_BYTES),
            database,
            sequencer,
            subscribers: Vec::new(),
        }
    }

    /// Serves hints and subscriptions until the channel of hints is closed.
    pub(crate) async fn run(
        mut self,
        mut hints: mpsc::Receiver<HintMessage>,
        mut subscriptions: mpsc::Receiver<SubscriptionRequest>,
    ) {
        let mut batch = Vec::with_capacity(BATCH_HINTS);
        loop {
            tokio::select! {
                biased;
                // First, as under steady hints a new index would never subscribe.
                Some(subscriber) = subscriptions.recv() => self.subscribe(subscriber),
                count = hints.recv_many(&mut batch, BATCH_HINTS) => {
                    if count == 0 {
                        return;
                    }
                    self.serve(std::mem::take(&mut batch)).await;
                }
            }
        }
    }

    fn subscribe(&mut self, subscriber: SubscriptionRequest) {
        self.subscribers.push(IndexSubscription {
            columns: subscriber.columns,
            required: subscriber.required,
            takes_static: subscriber.takes_static,
            messages: subscriber.messages,
        });
        self.remove_closed();
        // The subscriber may have been dropped already.
        let _ = subscriber.subscribed.send(());
    }

    /// Drops subscribers whose channels are closed, and narrows the reads to the columns of the
    /// others.
    fn remove_closed(&mut self) {
        self.subscribers.retain(|index| !index.messages.is_closed());
        let mut columns: Vec<ObservedColumn> = Vec::new();
        for column in self.subscribers.iter().flat_map(|index| &index.columns) {
            if !columns.contains(column) {
                columns.push(column.clone());
            }
        }
        if columns != self.reads.reader().columns {
            let reader = RowReader {
                table: self.table.clone(),
                keys: self.keys.clone(),
                columns,
            };
            self.reads = self.database.rows(&reader, PAGE_BYTES);
        }
    }

    async fn serve(&mut self, batch: Vec<HintMessage>) {
        let mut hinted = HintedRows::default();
        let mut markers = Vec::new();
        let mut reached = None;
        for message in batch {
            match message {
                HintMessage::Hint(hint) => match hint.target {
                    HintTarget::Row(key) => {
                        let noticed_us = hinted.rows.entry(key).or_default();
                        noticed_us.extend(hint.noticed_us);
                    }
                    HintTarget::Partition(partition) => {
                        hinted.partitions.insert(partition);
                    }
                    HintTarget::Static(partition) => {
                        if self.subscribers.iter().any(|index| index.takes_static) {
                            hinted.partitions.insert(partition);
                        }
                    }
                },
                HintMessage::Marker { index, answer } => markers.push((index, answer)),
                HintMessage::Position(position) => reached = reached.max(Some(position)),
            }
        }
        loop {
            if self.any_closed() {
                self.remove_closed();
            }
            if self.subscribers.is_empty() || hinted.is_empty() {
                break;
            }
            tokio::select! {
                biased;
                () = self.read(&hinted) => break,
                // The column of that index may have been dropped from the table too; a read of it
                // would never end. The rows are read again for the others. To get a row twice does
                // no harm.
                () = self.wait_for_close() => {}
            }
        }
        // After the rows: a position says that all that the log named before it has been handed
        // over.
        if let Some(position) = reached {
            for index in &self.subscribers {
                // A dropped index needs no position.
                let _ = index.messages.send(IndexMessage::Position(position)).await;
            }
        }
        for (index, answer) in markers {
            if let Some(messages) = index.upgrade() {
                // A dropped index needs no answer.
                let _ = messages.send(IndexMessage::Marker(answer)).await;
            }
        }
    }

    fn any_closed(&self) -> bool {
        self.subscribers
            .iter()
            .any(|index| index.messages.is_closed())
    }

    /// Waits until the channel of a subscriber is closed. Panics if there are no subscribers.
    async fn wait_for_close(&self) {
        let closed = self.subscribers.iter();
        let closed = closed.map(|index| Box::pin(index.messages.closed()));
        futures::future::select_all(closed).await;
    }

    async fn read(&self, hinted: &HintedRows) {
        self.read_rows(&hinted.rows).await;
        let partitions = hinted.partitions.iter().cloned();
        futures::stream::iter(partitions.map(|partition| self.read_partition(partition)))
            .buffer_unordered(READS_MAX)
            .collect::<()>()
            .await;
    }

    async fn read_rows(&self, rows: &BTreeMap<PrimaryKey, Vec<i64>>) {
        let size = self.reads.keys_at_a_time();
        let mut rows = rows.iter().peekable();
        let chunks = std::iter::from_fn(|| {
            rows.peek()?;
            let some = rows.by_ref().take(size);
            let (keys, noticed_us): (Vec<PrimaryKey>, Vec<&[i64]>) = some
                .map(|(key, noticed_us)| (key.clone(), noticed_us.as_slice()))
                .unzip();
            Some((keys, noticed_us.concat()))
        });
        let reads = chunks.map(|(keys, noticed_us)| async move {
            // The number is taken before the rows are requested.
            let issue = self.sequencer.issue();
            let rows = rows_of(&*self.reads, &keys).await;
            (issue, rows, noticed_us)
        });
        let mut found = futures::stream::iter(reads).buffer_unordered(READS_MAX);
        while let Some((issue, rows, noticed_us)) = found.next().await {
            self.send_rows(&issue, rows, noticed_us).await;
        }
    }

    async fn read_partition(&self, partition: PartitionKey) {
        let issue = self.sequencer.issue();
        let mut pages = TablePager::new(&self.reads, TablePart::Partition(partition.clone()));
        while let Some(rows) = pages.next().await {
            self.send_rows(&issue, rows, Vec::new()).await;
        }
        // Rows of the partition that no page has shown do not exist any more.
        for index in &self.subscribers {
            let _ = index
                .messages
                .send(IndexMessage::PartitionEnd {
                    issue: issue.clone(),
                    partition: partition.clone(),
                })
                .await;
        }
    }

    /// Sends each index the cells of its columns. A dropped index is forgotten later.
    async fn send_rows(
        &self,
        issue: &Arc<InFlightRead>,
        rows: Vec<FetchedRow>,
        noticed_us: Vec<i64>,
    ) {
        let read = &self.reads.reader().columns;
        for index in &self.subscribers {
            let columns = index.columns.iter();
            let columns: Option<Vec<usize>> = columns
                .map(|column| read.iter().position(|read| read == column))
                .collect();
            let Some(columns) = columns else {
                continue;
            };
            let _ = index
                .messages
                .send(IndexMessage::Rows(RowBatch {
                    issue: issue.clone(),
                    rows: joined(&rows, &columns, index.required),
                    noticed_us: noticed_us.clone(),
                }))
                .await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use index::SimilarityFunction;

    use super::*;
    use crate::database::tests::Silent;
    use crate::indexes::tests::identity;
    use crate::message::{ChangeHint, HINTS_MAX, LogPosition};
    use crate::observed::IndexableType;

    fn subscriber(
        column: &str,
    ) -> (
        SubscriptionRequest,
        mpsc::Receiver<IndexMessage>,
        oneshot::Receiver<()>,
    ) {
        let (messages, received) = mpsc::channel(1);
        let (subscribed, ready) = oneshot::channel();
        let subscriber = SubscriptionRequest {
            columns: vec![ObservedColumn {
                name: column.to_owned(),
                form: IndexableType::Vector {
                    dimensions: 2,
                    metric: SimilarityFunction::Cosine,
                },
                in_key: None,
            }],
            required: 0,
            takes_static: false,
            messages,
            subscribed,
        };
        (subscriber, received, ready)
    }

    #[tokio::test(start_paused = true)]
    async fn static_columns_are_read_for_an_index_that_filters_by_one() {
        for takes_static in [false, true] {
            let of = identity("a");
            let partition = of.keys.encode_partition([b"k".as_slice()]);
            let rereader = RowRereader::new(of.table, of.keys, Arc::new(Silent), Arc::default());
            let (hints, hint_receiver) = mpsc::channel(HINTS_MAX);
            let (subscriptions, subscription_receiver) = mpsc::channel(1);
            let serving = tokio::spawn(rereader.run(hint_receiver, subscription_receiver));
            let (mut subscriber, mut received, ready) = subscriber("a");
            subscriber.takes_static = takes_static;
            subscriptions.send(subscriber).await.unwrap();
            ready.await.unwrap();
            let hint = HintMessage::Hint(ChangeHint {
                target: HintTarget::Static(partition),
                noticed_us: None,
            });
            hints.send(hint).await.unwrap();
            let position = LogPosition { run: 1, time_us: 7 };
            hints.send(HintMessage::Position(position)).await.unwrap();
            // A read of the silent database never ends, so what comes after it waits.
            let told = tokio::time::timeout(Duration::from_secs(10), received.recv()).await;
            assert_eq!(told.is_err(), takes_static);
            serving.abort();
        }
    }

    #[tokio::test]
    async fn reads_that_can_not_end_are_given_up_with_the_index_that_asks_for_them() {
        let of = identity("a");
        let key = of.keys.encode([b"k".as_slice()]);
        let rereader = RowRereader::new(of.table, of.keys, Arc::new(Silent), Arc::default());
        let (hints, hint_receiver) = mpsc::channel(HINTS_MAX);
        let (subscriptions, subscription_receiver) = mpsc::channel(1);
        let serving = tokio::spawn(rereader.run(hint_receiver, subscription_receiver));
        let within = Duration::from_secs(10);

        let (a, a_received, ready) = subscriber("a");
        subscriptions.send(a).await.unwrap();
        ready.await.unwrap();
        let hint = HintMessage::Hint(ChangeHint {
            target: HintTarget::Row(key),
            noticed_us: None,
        });
        hints.send(hint).await.unwrap();
        // The hint is taken, and its read never ends.
        let taken = async {
            while hints.capacity() < HINTS_MAX {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(within, taken).await.unwrap();
        drop(a_received);

        let (b, _b_received, ready) = subscriber("b");
        subscriptions.send(b).await.unwrap();
        let ready = tokio::time::timeout(within, ready).await;
        ready.expect("it goes on").unwrap();
        serving.abort();
    }
}
