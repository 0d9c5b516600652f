//! The form of a connection's frames, which its client chooses by STARTUP.

use cql::wire::{Compression, ProtocolVersion, SegmentForm};

/// The form of a connection's frames.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FrameFormat {
    /// The version of the protocol.
    pub(crate) version: ProtocolVersion,
    /// The compression that STARTUP requested. In version 5 it is that of segments.
    compression: Option<Compression>,
}

impl FrameFormat {
    /// The form that a STARTUP requests.
    pub(crate) fn new(version: ProtocolVersion, compression: Option<Compression>) -> FrameFormat {
        FrameFormat {
            version,
            compression,
        }
    }

    /// The compression of each frame by itself.
    pub(crate) fn compression(self) -> Option<Compression> {
        self.compression
            .filter(|_| self.version == ProtocolVersion::V4)
    }

    /// The form of segments, which version 5 has.
    pub(crate) fn segments(self) -> SegmentForm {
        SegmentForm::of(self.compression)
    }
}
