//! Work that follows changes: writing segments, and merging them.
//!
//! Segments are in tiers by their live documents, each for eight times as many as the one before.
//! Eight of a tier become one of the next, and a segment of which more than a quarter is dead is
//! written again without these. So a document is written once for each tier, and a search looks at
//! seven segments of each at most.

use crate::TextIndex;
use crate::places::DocumentPlace;
use crate::segment::{MergeInput, TextSegment};
use crate::state::{SegmentPart, TextState};

/// How many segments of a tier are merged, and how many times as many documents the next tier is
/// for.
const TIER: usize = 8;
/// Segments of up to so many live documents are of the lowest tier.
const LOWEST_TIER: u32 = 1024;
/// A segment is written again if more than one of so many documents is dead.
const DOCUMENTS_PER_DEAD: usize = 4;

impl TextIndex {
    /// Does one piece of the work that changes have left: writes waiting documents as a segment, or
    /// merges segments. Returns whether there is more.
    ///
    /// `pace` is called often, every few milliseconds of work; it may block. Once it has returned
    /// false the piece is given up, which changes nothing, and another call begins it again.
    ///
    /// Where a file is damaged there is nothing more to do: [`TextIndex::files_state`] names it.
    pub fn maintain(&self, pace: &(dyn Fn() -> bool + Sync)) -> bool {
        if !pace() {
            return true;
        }
        // Before they are so many that a change must write them itself.
        if self.is_waiting(2) {
            return self.write_waiting(2).is_ok() && self.has_work();
        }
        let _merging = self.merging.lock();
        let inputs = {
            let mut state = self.state.lock();
            state.segments.retain(|part| part.live.count > 0);
            next_merge(&state)
        };
        if inputs.is_empty() {
            return false;
        }
        match self.merge(&inputs, pace) {
            Some(true) => self.has_work(),
            Some(false) => true,
            None => false,
        }
    }

    fn has_work(&self) -> bool {
        self.damage.found().is_none()
            && (self.is_waiting(2) || !next_merge(&self.state.lock()).is_empty())
    }

    /// Merges segments: `None` if that failed, false if it was stopped.
    fn merge(&self, parts: &[SegmentPart], pace: &(dyn Fn() -> bool + Sync)) -> Option<bool> {
        // A merge gives what it reads a new checksum, so all of it must be known to be sound.
        for part in parts {
            while !self.verify_piece(&part.segment)? {
                if !pace() {
                    return Some(false);
                }
            }
        }
        let inputs: Vec<MergeInput<'_>> = parts
            .iter()
            .map(|part| MergeInput {
                segment: &part.segment,
                dead: &part.live.dead,
            })
            .collect();
        let positions = self.options.positions;
        let merged = TextSegment::merge(&inputs, positions, pace, &self.damage);
        let Some(merged) = merged.ok()? else {
            return Some(false);
        };
        let former = parts.iter().zip(&inputs).flat_map(|(part, input)| {
            input.kept().map(move |document| DocumentPlace {
                part: part.number,
                document,
            })
        });
        let numbers: Vec<u32> = parts.iter().map(|part| part.number).collect();
        let mut state = self.state.lock();
        state.replace_segments(&numbers, former, merged);
        Some(true)
    }

    /// Verifies a piece of a segment's file. Returns whether all is verified; `None` if the file
    /// is damaged, which is noted.
    pub(crate) fn verify_piece(&self, segment: &TextSegment) -> Option<bool> {
        let Some(stored) = segment.stored() else {
            return Some(true);
        };
        match stored.verify_piece() {
            Ok(is_done) => Some(is_done),
            Err(error) => {
                self.damage.note(error.to_string());
                None
            }
        }
    }
}

/// The segments to be merged next; none if nothing is to be done.
fn next_merge(state: &TextState) -> Vec<SegmentPart> {
    let is_dead = |part: &&SegmentPart| {
        part.live.dead.len() * DOCUMENTS_PER_DEAD > part.segment.documents() as usize
    };
    if let Some(part) = state.segments.iter().find(is_dead) {
        return vec![part.clone()];
    }
    let highest = state.segments.iter().map(tier).max().unwrap_or(0);
    let tiers = (0..=highest).map(|of| {
        let parts = state.segments.iter().filter(move |part| tier(part) == of);
        parts.take(TIER).cloned().collect::<Vec<_>>()
    });
    let mut full = tiers.filter(|parts| parts.len() == TIER);
    full.next().unwrap_or_default()
}

/// The tier of a segment.
fn tier(part: &SegmentPart) -> u32 {
    let times = part.live.count.div_ceil(LOWEST_TIER).max(1);
    // The logarithm rounded up, so that eight small ones together are of the next.
    (0..)
        .find(|tier| (TIER as u64).pow(*tier) >= u64::from(times))
        .unwrap_or(0)
}
