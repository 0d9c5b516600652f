//! Opening a snapshot as an index.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::codes::Codebook;
use crate::graph::BlockDefect;
use crate::ids::IdEntry;
use crate::neighbour_index::Workspace;
use crate::snapshot::{self, MappedVectors, OpenedGeneration, StoredContents};
use crate::vectors::StoredVectors;
use crate::verification::Verification;
use crate::{NeighbourIndex, NeighbourIndexOptions, SnapshotError, VectorPlacement};

impl NeighbourIndex {
    /// Opens the snapshot in a directory. `options` must be those that the index was made with;
    /// only the beam widths and the placement may differ. With [`VectorPlacement::File`] new
    /// vectors go to a file in the system's directory for temporary files.
    ///
    /// Graph, codes and ids are read and verified. With [`VectorPlacement::File`] full vectors are
    /// used in place in the snapshot's files, which are never written to, and may be renamed or
    /// removed; [`NeighbourIndex::verify_vectors`] verifies them. With [`VectorPlacement::Memory`]
    /// full vectors are read and verified as well.
    pub fn open(
        snapshot: &Path,
        options: NeighbourIndexOptions,
    ) -> Result<NeighbourIndex, SnapshotError> {
        NeighbourIndex::open_in(snapshot, options, &std::env::temp_dir())
    }

    /// Opens a snapshot as [`NeighbourIndex::open`] does. New vectors go to a file in `directory`.
    pub fn open_in(
        snapshot: &Path,
        options: NeighbourIndexOptions,
        directory: &Path,
    ) -> Result<NeighbourIndex, SnapshotError> {
        options.validate()?;
        let mut index = NeighbourIndex::empty(options.in_effect(), directory);
        let opened = snapshot::open(snapshot)?;
        opened.expect_options(&index.options)?;
        index
            .check_kinds(&opened)
            .map_err(|what| opened.damaged_header(what))?;
        let OpenedGeneration {
            shape,
            contents,
            blocks,
            generation,
        } = opened;
        if let Some(parts) = &contents.codebook
            && index.kind.is_trained()
        {
            index.graph.train(Codebook::from_parts(parts.clone()));
        }
        if let Some(codebook) = index.graph.codebook() {
            codebook.restore_centres(&contents.centres)?;
        }
        let StoredContents {
            entry,
            spread,
            widths,
            upper,
            lacks_errors,
            ids,
            zero_ids,
            ..
        } = contents;
        index.graph.spread_mut().restore(spread);
        index.samples.restore(widths);
        let bereaved = index
            .graph
            .restore((blocks, lacks_errors), shape.slots, &ids, entry)
            .map_err(|BlockDefect { slot, what }| generation.damaged_block(&shape, slot, what))?;
        index.linked.store(entry.is_some(), Ordering::Release);
        index.restore_ids(&ids, &zero_ids)?;
        for &(id, slot) in &ids {
            if index.graph.block(slot).id() != id {
                index.sharers.join(&index.graph, slot, id);
            }
        }
        let has_upper = index.graph.restore_upper(&upper);
        let generation = Arc::new(generation);
        if let Some(vectors) = &mut index.vectors {
            match index.options.placement {
                VectorPlacement::File => {
                    let source = MappedVectors::map(Arc::clone(&generation), vectors.array_mut())?;
                    index.verification = Verification::of(source, vectors.array().faults());
                }
                VectorPlacement::Memory => MappedVectors::read(&generation, vectors.array_mut())?,
            }
        }
        if lacks_errors {
            index.renewal.begin(index.graph.slots().end());
        }
        *index.generation.get_mut() = Some(generation);
        index.with_workspace(|Workspace { participant, tools }| {
            let _pin = participant.pin();
            // SAFETY: the epoch is pinned, and no one has killed anything yet.
            unsafe {
                index.graph.relink_all(bereaved, &mut tools.space);
                if !has_upper {
                    index.graph.rebuild_upper(&mut tools.space);
                }
            }
        });
        Ok(index)
    }

    /// Checks that blocks, vectors and codes are of the kinds that the options make.
    fn check_kinds(&self, opened: &OpenedGeneration) -> Result<(), &'static str> {
        if opened.shape.block_bytes as usize != self.graph.layout().stride {
            return Err("its blocks have another size than its options make");
        }
        let vector_bytes = self.vectors.as_ref().map_or(0, StoredVectors::stride);
        if opened.shape.vector_bytes as usize != vector_bytes {
            return Err("its vectors have another size than its options make");
        }
        match &opened.contents.codebook {
            Some(parts) if parts.kind != self.kind => {
                Err("its codes are of another kind than its options make")
            }
            Some(parts) if parts.metric != self.options.metric => {
                Err("its codebook is of another metric")
            }
            None if opened.contents.entry.is_some() => Err("it has links and no codebook"),
            _ => Ok(()),
        }
    }

    fn restore_ids(&self, ids: &[(u32, u32)], zero_ids: &[u32]) -> Result<(), SnapshotError> {
        let with_slots = ids.iter().map(|&(id, slot)| (id, IdEntry::Slot(slot)));
        let without = zero_ids.iter().map(|&id| (id, IdEntry::Undirected));
        for (id, entry) in with_slots.chain(without) {
            self.ids.ensure(id)?;
            let entered = self.enter(id, IdEntry::Vacant, entry);
            debug_assert_eq!(entered, Ok(()), "ids are in one table once");
        }
        self.len
            .store(ids.len() + zero_ids.len(), Ordering::Release);
        Ok(())
    }
}
