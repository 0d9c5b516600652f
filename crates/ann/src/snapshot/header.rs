//! The first 4096 bytes of `graph`.

use std::path::Path;

use super::checksum::Checksum;
use super::contents::mean_elements;
use super::layout::{GraphFileLayout, HEADER_BYTES, TableCounts, VERSION, VERSION_MIN};
use super::{SlotShape, SnapshotError, StoredContents};
use crate::codes::{CodeKind, CodebookParts};
use crate::{
    CodeChoice, DistanceMetric, NeighbourIndexOptions, VectorPlacement, VectorQuantization,
};

const MAGIC: &[u8; 8] = b"ANNGRAPH";
/// The entry of a graph in which walks have none.
const NO_ENTRY: u32 = u32::MAX;
/// The kind of codes where there is no codebook.
const NO_CODEBOOK: u8 = 0;
/// The offset of the header's own checksum, which is at its end.
const CHECKSUM_OFFSET: usize = HEADER_BYTES - Checksum::BYTES;

/// The spread where none has been learned.
const NO_SPREAD: f32 = 0.0;

/// The fields of the header.
pub(super) struct GraphFileHeader {
    pub(super) shape: SlotShape,
    pub(super) counts: TableCounts,
    pub(super) layout: GraphFileLayout,
    /// The contents without their tables: no mean, no centres, no upper level, no ids.
    pub(super) contents: StoredContents,
    /// The checksum of the list of checksums.
    pub(super) checksum: Checksum,
}

impl GraphFileHeader {
    /// The bytes of the header, as drawn in `docs/snapshot-format.md`.
    pub(super) fn encode(&self) -> [u8; HEADER_BYTES] {
        let StoredContents {
            options,
            codebook,
            entry,
            spread,
            widths,
            ..
        } = &self.contents;
        let mut fields = FieldWriter::default();
        fields.put(MAGIC);
        fields.put(&VERSION.to_le_bytes());
        fields.put(&[0; 4]);
        fields.put(&self.layout.checksums.end.to_le_bytes());
        fields.put(&self.shape.slots.to_le_bytes());
        fields.put(&entry.unwrap_or(NO_ENTRY).to_le_bytes());
        fields.put(&self.shape.block_bytes.to_le_bytes());
        fields.put(&self.shape.vector_bytes.to_le_bytes());
        fields.put(&self.counts.ids.to_le_bytes());
        fields.put(&self.counts.zero_ids.to_le_bytes());
        for option in [
            options.dimensions,
            options.max_connections,
            options.build_beam_width,
            options.search_beam_width,
        ] {
            fields.put(&(option as u32).to_le_bytes());
        }
        fields.put(&[
            metric_byte(options.metric),
            quantization_byte(options.quantization),
            codes_byte(options.codes),
            placement_byte(options.placement),
        ]);
        let (kind, metric, seed) = match codebook {
            None => (NO_CODEBOOK, 0, 0),
            Some(parts) => (kind_byte(parts.kind), metric_byte(parts.metric), parts.seed),
        };
        fields.put(&[kind, metric, 0, 0]);
        fields.put(&self.counts.mean_elements.to_le_bytes());
        fields.put(&spread.unwrap_or(NO_SPREAD).to_le_bytes());
        fields.put(&seed.to_le_bytes());
        fields.put(&self.checksum.to_bytes());
        fields.put(&self.counts.centre_elements.to_le_bytes());
        fields.put(&self.counts.upper_words.to_le_bytes());
        for width in widths {
            fields.put(&width.to_le_bytes());
        }

        let mut bytes = [0; HEADER_BYTES];
        bytes[..fields.0.len()].copy_from_slice(&fields.0);
        let checksum = Checksum::of(&bytes[..CHECKSUM_OFFSET]);
        bytes[CHECKSUM_OFFSET..].copy_from_slice(&checksum.to_bytes());
        bytes
    }

    /// Reads and checks the header of the file `path`, which is `file_bytes` long. Every length
    /// that follows from the result fits the file.
    pub(super) fn decode(
        bytes: &[u8; HEADER_BYTES],
        file_bytes: u64,
        path: &Path,
    ) -> Result<GraphFileHeader, SnapshotError> {
        let mut reader = FieldReader(bytes);
        if reader.take::<8>() != *MAGIC {
            return Err(SnapshotError::NotASnapshot {
                path: path.to_owned(),
            });
        }
        let version = reader.u32();
        if !(VERSION_MIN..=VERSION).contains(&version) {
            return Err(SnapshotError::Version {
                path: path.to_owned(),
                found: version,
                known: VERSION,
            });
        }
        let expected = Checksum::from_bytes(*bytes.last_chunk().expect("of a fixed length"));
        if Checksum::of(&bytes[..CHECKSUM_OFFSET]) != expected {
            let what = "its header has another checksum than when it was written";
            return Err(SnapshotError::damaged(path, 0, what));
        }
        let damaged = |what| SnapshotError::damaged(path, 0, what);
        let (mut header, length) = GraphFileHeader::fields(reader).map_err(damaged)?;
        header.contents.lacks_errors = version < VERSION;
        if length != file_bytes {
            return Err(damaged("the file is not as long as it was written"));
        }
        Ok(header)
    }

    /// Reads all fields after the version. Returns the header, and the file's length as it has it.
    fn fields(mut reader: FieldReader) -> Result<(GraphFileHeader, u64), &'static str> {
        reader.take::<4>();
        let length = reader.u64();
        let slots = reader.u32();
        let entry = reader.u32();
        let shape = SlotShape {
            slots,
            block_bytes: reader.u32(),
            vector_bytes: reader.u32(),
        };
        let (ids, zero_ids) = (reader.u64(), reader.u64());
        let numbers: [usize; 4] = std::array::from_fn(|_| reader.u32() as usize);
        let dimensions = numbers[0];
        let [metric, quantization, codes, placement] = reader.take();
        let [kind, codebook_metric, ..] = reader.take::<4>();
        let mean_elements_found = reader.u32();
        let spread = reader.f32();
        let seed = reader.u64();
        let checksum = Checksum::from_bytes(reader.take());
        let (centre_elements, upper_words) = (reader.u64(), reader.u64());
        let widths = [reader.f32(), reader.f32()];

        shape.check()?;
        let options = NeighbourIndexOptions {
            dimensions,
            metric: metric_of(metric)?,
            quantization: quantization_of(quantization)?,
            codes: codes_of(codes)?,
            placement: placement_of(placement)?,
            max_connections: numbers[1],
            build_beam_width: numbers[2],
            search_beam_width: numbers[3],
        };
        let codebook = codebook_of(kind, codebook_metric, dimensions, seed)?;
        let kind = codebook.as_ref().map(|parts| parts.kind);
        let elements = kind.map_or(0, |kind| mean_elements(kind, dimensions));
        if mean_elements_found as usize != elements {
            return Err("the codebook's mean has a wrong number of elements");
        }
        let counts = TableCounts {
            mean_elements: mean_elements_found,
            centre_elements,
            upper_words,
            ids,
            zero_ids,
        };
        let layout =
            GraphFileLayout::new(&shape, &counts).ok_or("its lengths add up to too much")?;
        if layout.checksums.end != length {
            return Err("its lengths do not add up to that of the file");
        }
        let header = GraphFileHeader {
            shape,
            counts,
            layout,
            contents: StoredContents {
                options,
                codebook,
                entry: (entry != NO_ENTRY).then_some(entry),
                spread: (spread != NO_SPREAD).then_some(spread),
                widths,
                centres: Vec::new(),
                upper: Vec::new(),
                lacks_errors: false,
                ids: Vec::new(),
                zero_ids: Vec::new(),
            },
            checksum,
        };
        Ok((header, length))
    }
}

/// Fields, put one after the other.
#[derive(Default)]
struct FieldWriter(Vec<u8>);

impl FieldWriter {
    fn put(&mut self, field: &[u8]) {
        self.0.extend_from_slice(field);
    }
}

/// Takes fields from the front. All of them are within the header, so it never runs out.
struct FieldReader<'a>(&'a [u8]);

impl FieldReader<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (field, rest) = self.0.split_first_chunk().expect("within the header");
        self.0 = rest;
        *field
    }

    fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.take())
    }

    fn f32(&mut self) -> f32 {
        f32::from_le_bytes(self.take())
    }
}

fn metric_byte(metric: DistanceMetric) -> u8 {
    match metric {
        DistanceMetric::Cosine => 0,
        DistanceMetric::Euclidean => 1,
        DistanceMetric::DotProduct => 2,
        DistanceMetric::Hamming => 3,
    }
}

/// The codebook, but for its mean, which is stored elsewhere; `None` if there is none.
fn codebook_of(
    kind: u8,
    metric: u8,
    dimensions: usize,
    seed: u64,
) -> Result<Option<CodebookParts>, &'static str> {
    if kind == NO_CODEBOOK {
        return Ok(None);
    }
    Ok(Some(CodebookParts {
        kind: kind_of(kind)?,
        metric: metric_of(metric)?,
        dimensions,
        seed,
        mean: Vec::new(),
    }))
}

fn metric_of(byte: u8) -> Result<DistanceMetric, &'static str> {
    match byte {
        0 => Ok(DistanceMetric::Cosine),
        1 => Ok(DistanceMetric::Euclidean),
        2 => Ok(DistanceMetric::DotProduct),
        3 => Ok(DistanceMetric::Hamming),
        _ => Err("its metric is unknown"),
    }
}

fn quantization_byte(quantization: VectorQuantization) -> u8 {
    match quantization {
        VectorQuantization::F32 => 0,
        VectorQuantization::F16 => 1,
        VectorQuantization::Bf16 => 2,
        VectorQuantization::I8 => 3,
        VectorQuantization::B1 => 4,
    }
}

fn quantization_of(byte: u8) -> Result<VectorQuantization, &'static str> {
    match byte {
        0 => Ok(VectorQuantization::F32),
        1 => Ok(VectorQuantization::F16),
        2 => Ok(VectorQuantization::Bf16),
        3 => Ok(VectorQuantization::I8),
        4 => Ok(VectorQuantization::B1),
        _ => Err("its quantization is unknown"),
    }
}

fn codes_byte(codes: CodeChoice) -> u8 {
    match codes {
        CodeChoice::Auto => 0,
        CodeChoice::Nibbles => 1,
        CodeChoice::Bytes => 2,
        CodeChoice::Floats => 3,
    }
}

fn codes_of(byte: u8) -> Result<CodeChoice, &'static str> {
    match byte {
        0 => Ok(CodeChoice::Auto),
        1 => Ok(CodeChoice::Nibbles),
        2 => Ok(CodeChoice::Bytes),
        3 => Ok(CodeChoice::Floats),
        _ => Err("its option of codes is unknown"),
    }
}

fn placement_byte(placement: VectorPlacement) -> u8 {
    match placement {
        VectorPlacement::File => 0,
        VectorPlacement::Memory => 1,
    }
}

fn placement_of(byte: u8) -> Result<VectorPlacement, &'static str> {
    match byte {
        0 => Ok(VectorPlacement::File),
        1 => Ok(VectorPlacement::Memory),
        _ => Err("its placement of vectors is unknown"),
    }
}

fn kind_byte(kind: CodeKind) -> u8 {
    match kind {
        CodeKind::Nibbles => 1,
        CodeKind::Bytes => 2,
        CodeKind::Floats => 3,
        CodeKind::Bits => 4,
    }
}

fn kind_of(byte: u8) -> Result<CodeKind, &'static str> {
    match byte {
        1 => Ok(CodeKind::Nibbles),
        2 => Ok(CodeKind::Bytes),
        3 => Ok(CodeKind::Floats),
        4 => Ok(CodeKind::Bits),
        _ => Err("its kind of codes is unknown"),
    }
}
