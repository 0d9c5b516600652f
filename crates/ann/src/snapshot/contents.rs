//! The options and tables of an index, without its blocks and full vectors.

use std::cmp::Ordering;

use super::SlotShape;
use crate::codes::{CodeKind, CodebookParts};
use crate::{DistanceMetric, NeighbourIndexOptions};

/// The tables of a snapshot, and the options of its index.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct StoredContents {
    /// The options that the index was made with.
    pub(crate) options: NeighbourIndexOptions,
    /// The parts of the codebook; None if codes were not trained yet.
    pub(crate) codebook: Option<CodebookParts>,
    /// The slot where a walk begins, if there is one.
    pub(crate) entry: Option<u32>,
    /// The exponent of the growth of distances from neighbour to neighbour, finite and above 0;
    /// None if it was not learned yet.
    pub(crate) spread: Option<f32>,
    /// The widths that walks were found to need ([`crate::Calibration`]); finite and not negative.
    pub(crate) widths: [f32; 2],
    /// The points of the codebook's centres, one after the other; all finite.
    pub(crate) centres: Vec<f32>,
    /// The upper level of the graph, as its words (`graph::upper`). Its user checks them.
    pub(crate) upper: Vec<u32>,
    /// Whether the blocks have no centres and no errors of codes, as in the format's version 1.
    pub(crate) lacks_errors: bool,
    /// Ids and their slots, by ascending id.
    pub(crate) ids: Vec<(u32, u32)>,
    /// Ids of the zero vectors, ascending.
    pub(crate) zero_ids: Vec<u32>,
}

/// Number of elements in the mean of a codebook of this kind.
pub(super) fn mean_elements(kind: CodeKind, dimensions: usize) -> usize {
    match kind {
        CodeKind::Nibbles | CodeKind::Bytes => dimensions,
        CodeKind::Floats | CodeKind::Bits => 0,
    }
}

impl StoredContents {
    /// Checks that the parts go together; the error names what is wrong.
    pub(super) fn check(&self, shape: &SlotShape) -> Result<(), &'static str> {
        let is_slot = |slot: u32| slot < shape.slots;
        if self.options.validate().is_err() {
            return Err("an option is out of its range");
        }
        if let Some(codebook) = &self.codebook {
            self.check_codebook(codebook)?;
        }
        if !self.entry.is_none_or(is_slot) {
            return Err("the entry is no slot");
        }
        let may_be = |spread: f32| spread.is_finite() && spread > 0.0;
        if !self.spread.is_none_or(may_be) {
            return Err("the spread is no positive number");
        }
        if !self
            .widths
            .iter()
            .all(|width| width.is_finite() && *width >= 0.0)
        {
            return Err("a width of walks is no positive number");
        }
        self.check_centres()?;
        if !self.ids.is_sorted_by(|(a, _), (b, _)| a < b)
            || !self.zero_ids.is_sorted_by(|a, b| a < b)
        {
            return Err("ids are not in ascending order");
        }
        if !are_disjoint(&self.ids, &self.zero_ids) {
            return Err("an id is in both tables");
        }
        if !self.ids.iter().all(|&(_, slot)| is_slot(slot)) {
            return Err("an id has a slot beyond the last");
        }
        Ok(())
    }

    fn check_centres(&self) -> Result<(), &'static str> {
        let elements = self
            .codebook
            .as_ref()
            .map_or(0, CodebookParts::centre_elements);
        let are_whole = match elements {
            0 => self.centres.is_empty(),
            elements => self.centres.len().is_multiple_of(elements),
        };
        if !are_whole {
            return Err("the codebook's centres have a wrong number of elements");
        }
        if !self.centres.iter().all(|element| element.is_finite()) {
            return Err("a centre of the codebook is not finite");
        }
        Ok(())
    }

    fn check_codebook(&self, codebook: &CodebookParts) -> Result<(), &'static str> {
        if codebook.dimensions != self.options.dimensions {
            return Err("the codebook is of other dimensions");
        }
        if (codebook.kind == CodeKind::Bits) != (codebook.metric == DistanceMetric::Hamming) {
            return Err("codes of bits go with the Hamming distance");
        }
        if codebook.mean.len() != mean_elements(codebook.kind, codebook.dimensions) {
            return Err("the codebook's mean has a wrong number of elements");
        }
        if !codebook.mean.iter().all(|element| element.is_finite()) {
            return Err("the codebook's mean is not finite");
        }
        Ok(())
    }
}

/// Whether no id is in both lists, which are ascending.
fn are_disjoint(ids: &[(u32, u32)], zero_ids: &[u32]) -> bool {
    let mut ids = ids.iter().map(|&(id, _)| id).peekable();
    for zero_id in zero_ids {
        while let Some(id) = ids.peek() {
            match id.cmp(zero_id) {
                Ordering::Less => ids.next(),
                Ordering::Equal => return false,
                Ordering::Greater => break,
            };
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: SlotShape = SlotShape {
        slots: 4,
        block_bytes: 64,
        vector_bytes: 8,
    };

    fn sound() -> StoredContents {
        StoredContents {
            options: NeighbourIndexOptions::new(2),
            codebook: Some(CodebookParts {
                kind: CodeKind::Nibbles,
                metric: DistanceMetric::Cosine,
                dimensions: 2,
                seed: 7,
                mean: vec![0.5, -0.5],
            }),
            entry: Some(3),
            spread: Some(0.1),
            widths: [1.0, 2.0],
            centres: vec![0.5; 128],
            upper: vec![7],
            lacks_errors: false,
            ids: vec![(1, 3), (5, 0), (9, 1)],
            zero_ids: vec![0, 4, 10],
        }
    }

    /// Breaks one thing.
    type Break = fn(&mut StoredContents);

    #[test]
    fn inconsistent_contents_are_refused() {
        assert_eq!(sound().check(&SHAPE), Ok(()));
        let breaks: [(&str, Break); 13] = [
            ("option", |c| c.options.dimensions = 0),
            ("dimensions", |c| c.options.dimensions = 3),
            ("Hamming", |c| {
                c.codebook.as_mut().unwrap().kind = CodeKind::Bits;
            }),
            ("mean has", |c| {
                c.codebook.as_mut().unwrap().kind = CodeKind::Floats;
            }),
            ("mean has", |c| c.codebook.as_mut().unwrap().mean.push(0.0)),
            ("finite", |c| {
                c.codebook.as_mut().unwrap().mean[1] = f32::NAN;
            }),
            ("entry", |c| c.entry = Some(4)),
            ("spread", |c| c.spread = Some(f32::NAN)),
            ("spread", |c| c.spread = Some(-0.1)),
            ("ascending", |c| c.ids.swap(0, 1)),
            ("ascending", |c| c.zero_ids[1] = 0),
            ("both", |c| c.zero_ids[1] = 5),
            ("beyond", |c| c.ids[2].1 = 4),
        ];
        for (reason, break_it) in breaks {
            let mut contents = sound();
            break_it(&mut contents);
            let error = contents.check(&SHAPE).expect_err(reason);
            assert!(error.contains(reason), "{error}: {reason}");
        }
    }
}
