//! Merging segments, on the calling thread.

use std::sync::atomic::{AtomicBool, Ordering};

use ann::IdSet;
use tantivy::directory::OwnedBytes;
use tantivy::fastfield::{AliveBitSet, write_alive_bitset};
use tantivy::indexer::merge_filtered_segments;
use tantivy::{BitSet, Segment};

use super::directory::SegmentDirectory;
use super::{IDS, LENGTHS, TextSegment, bytes_of, schema};
use crate::pace;

/// A segment to be merged.
pub(crate) struct MergeInput<'a> {
    pub segment: &'a TextSegment,
    /// The documents that are left out.
    pub dead: &'a IdSet,
}

impl MergeInput<'_> {
    /// The documents that are kept, ascending. Merged, they follow each other in this order.
    pub fn kept(&self) -> impl Iterator<Item = u32> + '_ {
        let all = 0..self.segment.documents();
        all.filter(|document| !self.dead.contains(*document))
    }

    /// The documents that are kept, as tantivy has them; `None` for all.
    fn alive(&self) -> tantivy::Result<Option<AliveBitSet>> {
        if self.dead.is_empty() {
            return Ok(None);
        }
        let mut alive = BitSet::with_max_value_and_full(self.segment.documents());
        for document in self.dead.iter() {
            alive.remove(document);
        }
        let mut bytes = Vec::new();
        write_alive_bitset(&alive, &mut bytes)?;
        Ok(Some(AliveBitSet::open(OwnedBytes::new(bytes))))
    }
}

/// Merges segments; `None` if `pace` has stopped it.
pub(super) fn merge(
    inputs: &[MergeInput<'_>],
    pace: &(dyn Fn() -> bool + Sync),
) -> tantivy::Result<Option<SegmentDirectory>> {
    let is_stopped = AtomicBool::new(false);
    // After it was stopped, it is not asked again: writers flush once more when they are dropped.
    let goes_on = || {
        let goes_on = !is_stopped.load(Ordering::Relaxed) && pace();
        is_stopped.store(!goes_on, Ordering::Relaxed);
        goes_on
    };
    let segments: Vec<Segment> = inputs
        .iter()
        .map(|input| input.segment.segment.clone())
        .collect();
    let alive: Vec<Option<AliveBitSet>> = inputs
        .iter()
        .map(MergeInput::alive)
        .collect::<tantivy::Result<_>>()?;
    let directory = SegmentDirectory::default();
    let merged = pace::with_pace(&goes_on, || {
        merge_filtered_segments(&segments, schema::settings(), alive, directory.clone())
    });
    if is_stopped.load(Ordering::Relaxed) {
        return Ok(None);
    }
    merged?;
    let of_all = |number: fn(&TextSegment, u32) -> u32| {
        let numbers = inputs.iter().flat_map(|input| {
            let kept = input.kept();
            kept.map(move |document| number(input.segment, document))
        });
        bytes_of(numbers)
    };
    directory.put(IDS, of_all(TextSegment::id));
    directory.put(LENGTHS, of_all(TextSegment::length));
    Ok(Some(directory))
}
