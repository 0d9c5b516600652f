//! The making of an index's map: rows are drawn, and their vectors are laid out in two dimensions
//! ([`point_map`]).
//!
//! It is work in the background on one thread, which gives its turn back every few milliseconds and
//! ends soon after it was requested to, or after its index was dropped.

use std::sync::Arc;
use std::time::Duration;

use point_map::{LayoutPace, LayoutStopped, MapLayout, VectorSample, layout_bytes};
use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use tasks::{ProgressReporter, Task};
use tokio::time::Instant;

use super::{SearchError, VectorSearcher};
use crate::compute::{BackgroundTurn, ServiceStopping};
use crate::identity::{IndexIdentity, IndexName};
use crate::indexes::{
    ColumnPieces, IndexEngine, IndexHandle, RankedRows, RequestedColumn, SampledRows,
};
use crate::memory::{NoMemory, ProcessMemory};

/// The most bytes of the vectors of a map while it is made. It has fewer rows if they would take
/// more.
const VECTOR_BYTES_MAX: usize = 256 << 20;

/// The most bytes of a map.
const MAP_BYTES_MAX: usize = 16 << 20;

/// The number of rows that are looked at before others may come first.
const ROWS_AT_ONCE: usize = 64;

/// The longest wait until the index has taken up what was written before.
const TAKEN_UP_WITHIN: Duration = Duration::from_secs(10);

/// The rows that a map is to have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WantedRows {
    /// The most rows.
    pub points: usize,
    /// The number from which they are drawn.
    pub seed: u32,
}

/// A map that was made.
#[derive(Debug)]
pub(crate) struct MadeMap {
    /// The number of rows on it.
    pub points: usize,
    /// The number of rows of the index.
    pub rows: usize,
    /// The time at which rows were drawn, since the epoch, by the clock of the database.
    pub made_at: Duration,
    /// The time that it took.
    pub took: Duration,
    /// The share of the nearest rows that are among the nearest on the map.
    pub neighbours_kept: Option<f64>,
    /// That share on a map of the principal components.
    pub neighbours_kept_by_pca: Option<f64>,
    /// The horizontal positions, as JSON.
    pub x: Box<RawValue>,
    /// The vertical positions, as JSON.
    pub y: Box<RawValue>,
    /// The keys and the values of filter columns, as JSON.
    pub columns: ColumnPieces,
}

impl MadeMap {
    /// The bytes that the map takes.
    pub(crate) fn bytes(&self) -> usize {
        let pieces = [
            &self.x,
            &self.y,
            &self.columns.primary_keys,
            &self.columns.column_values,
        ];
        pieces.iter().map(|piece| piece.get().len()).sum()
    }
}

/// The reason why there is no map.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum MapFault {
    /// The rows could not be read.
    #[error(transparent)]
    Search(#[from] SearchError),
    /// The vectors take more memory than there is.
    #[error(transparent)]
    NoMemory(#[from] NoMemory),
    /// The keys and filter columns of the rows are too large.
    #[error(
        "the keys and filter columns of {points} rows take more than the {mib} MiB that a map may have: request fewer points",
        mib = MAP_BYTES_MAX >> 20
    )]
    TooLarge {
        /// The rows that it would have.
        points: usize,
    },
    /// The index is not there any more.
    #[error("index {0} was dropped or replaced while its map was made")]
    Dropped(IndexName),
    /// The map could not be written as JSON.
    #[error("the map has no form in JSON: {0}")]
    NoJson(String),
    /// It was requested that the work stop.
    #[error("the map was aborted")]
    Stopped,
}

impl From<LayoutStopped> for MapFault {
    fn from(_: LayoutStopped) -> MapFault {
        MapFault::Stopped
    }
}

impl VectorSearcher {
    /// Makes the map of an index on vectors. `memory` is the process's.
    pub(crate) async fn make_map(
        &self,
        index: &Arc<IndexHandle>,
        wanted: WantedRows,
        memory: Arc<ProcessMemory>,
        task: &Task,
    ) -> Result<MadeMap, MapFault> {
        let freshness = &index.freshness;
        if !freshness.wait_for_acknowledged(TAKEN_UP_WITHIN).await {
            return Err(SearchError::Behind(index.identity.name.clone()).into());
        }
        let now_s = match freshness.acknowledged_us() {
            Some(_) => self.engine.now_s(),
            // As for searches next to a cluster.
            None => 0,
        };
        let making = MapMaking {
            engine: self.engine.clone(),
            index: index.clone(),
            memory,
            wanted,
            made_at: self.engine.now(),
            now_s,
            task: task.progress_reporter(),
        };
        let made = self
            .compute
            .long_background(move |turn| making.make_of_present(turn));
        let stopping =
            |error: ServiceStopping| MapFault::Search(SearchError::Internal(error.to_string()));
        made.await.map_err(stopping)?
    }
}

/// A map on its way, on a thread for long work.
struct MapMaking {
    engine: Arc<IndexEngine>,
    index: Arc<IndexHandle>,
    memory: Arc<ProcessMemory>,
    wanted: WantedRows,
    made_at: Duration,
    now_s: u32,
    task: ProgressReporter,
}

impl MapMaking {
    /// Makes the map, unless its index is dropped meanwhile: the work would keep all of its memory.
    fn make_of_present(&self, turn: &BackgroundTurn) -> Result<MadeMap, MapFault> {
        let made = self.make(&|| {
            turn.share();
            self.task.is_wanted() && self.is_present()
        });
        match made {
            Ok(_) | Err(MapFault::Stopped) if !self.is_present() => {
                Err(MapFault::Dropped(self.index.identity.name.clone()))
            }
            made => made,
        }
    }

    /// Whether the index is still there.
    fn is_present(&self) -> bool {
        let now = self.engine.index(&self.index.identity.name);
        now.is_some_and(|now| Arc::ptr_eq(&now, &self.index))
    }

    /// Makes the map. `pause` lets others come first, and says whether to go on.
    fn make(&self, pause: &dyn Fn() -> bool) -> Result<MadeMap, MapFault> {
        let began = Instant::now();
        let rows = self.index.content.len();
        let columns = columns_of(&self.index.identity);
        let (sampled, sample) = self.sample(&columns, pause)?;
        let mut pace = |done| {
            self.task.set_completed(done);
            pause()
        };
        let seed = u64::from(self.wanted.seed);
        let layout = point_map::lay_out(&sample, seed, &mut LayoutPace::new(&mut pace))?;
        drop(sample);
        let MapLayout {
            x,
            y,
            neighbours_kept,
            neighbours_kept_by_pca,
        } = layout;
        let made = MadeMap {
            points: x.len(),
            rows,
            made_at: self.made_at,
            took: began.elapsed(),
            neighbours_kept,
            neighbours_kept_by_pca,
            x: piece(&x)?,
            y: piece(&y)?,
            columns: sampled.column_pieces().map_err(no_json)?,
        };
        match made.bytes() > MAP_BYTES_MAX {
            true => Err(MapFault::TooLarge {
                points: made.points,
            }),
            false => Ok(made),
        }
    }

    /// Reads the drawn rows: their keys and values, and their vectors.
    fn sample<'a>(
        &'a self,
        columns: &'a [RequestedColumn],
        pause: &dyn Fn() -> bool,
    ) -> Result<(RankedRows<'a>, VectorSample), MapFault> {
        let content = &self.index.content;
        let space = content.vector_space().map_err(SearchError::from)?;
        let vector_bytes = 4 * space.dimensions.max(1);
        let points = self.wanted.points.min(VECTOR_BYTES_MAX / vector_bytes);
        let ids = content.drawn_rows(points, u64::from(self.wanted.seed));
        let _claim = self
            .memory
            .claim(layout_bytes(ids.len(), space.dimensions))?;
        let keys = &self.index.identity.keys;
        let mut sampled = SampledRows {
            rows: RankedRows::with_capacity(keys, ids.len()).returning(Some(columns)),
            elements: Vec::with_capacity(ids.len() * space.dimensions),
        };
        for ids in ids.chunks(ROWS_AT_ONCE) {
            let read = content.sample_rows(ids, self.now_s, &mut sampled);
            read.map_err(SearchError::from)?;
            if sampled.rows.bytes() > MAP_BYTES_MAX {
                return Err(MapFault::TooLarge { points });
            }
            if !pause() {
                return Err(MapFault::Stopped);
            }
        }
        let mut go_on = |_| pause();
        let mut pace = LayoutPace::new(&mut go_on);
        let elements = sampled.elements;
        let sample = VectorSample::new(space.dimensions, space.metric, elements, &mut pace)?;
        Ok((sampled.rows, sample))
    }
}

/// The filter columns of an index, as a map has their values.
fn columns_of(index: &IndexIdentity) -> Vec<RequestedColumn> {
    let names = index.filter_columns.iter();
    let names: Vec<String> = names.map(|column| column.name.clone()).collect();
    // The index stores all of them.
    RequestedColumn::all_of(index, &names).unwrap_or_default()
}

fn piece<T: Serialize>(value: &T) -> Result<Box<RawValue>, MapFault> {
    to_raw_value(value).map_err(no_json)
}

fn no_json(error: serde_json::Error) -> MapFault {
    MapFault::NoJson(error.to_string())
}
