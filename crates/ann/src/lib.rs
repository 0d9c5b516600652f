//! Approximate nearest neighbours: a concurrent index over vectors with dense `u32` ids.
//!
//! The library knows nothing of keys, rows, sockets or a runtime. Whoever owns an [`Index`] maps
//! its own keys to ids.

/// How the distance of two vectors is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Metric {
    /// `1 - cos`, in [0, 2]; a zero vector has distance 1 to everything.
    Cosine,
    /// The squared Euclidean distance.
    Euclidean,
    /// `1 - a.b`.
    DotProduct,
    /// The number of differing bits; a float counts as one bit, set when strictly positive.
    Hamming,
}

/// What a vector is kept as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantization {
    F32,
    F16,
    Bf16,
    I8,
    /// One bit an element; forces [`Metric::Hamming`].
    B1,
}

/// What an index is made with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// 1 to 16,000.
    pub dimensions: usize,
    pub metric: Metric,
    pub quantization: Quantization,
    /// The `m` of HNSW.
    pub max_connections: usize,
    /// The `ef_construction` of HNSW.
    pub build_beam_width: usize,
    /// The `ef` of HNSW, for searches that ask for fewer neighbours than that.
    pub search_beam_width: usize,
}

/// One answer of a search.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Neighbour {
    pub id: u32,
    /// By the metric of the index; smaller is nearer.
    pub distance: f32,
}

#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum Error {
    #[error("Wrong embedding dimension: expected {expected}, got {actual}")]
    Dimensions { expected: usize, actual: usize },
    #[error("element {position} of the vector is not a finite number")]
    NotFinite { position: usize },
    #[error("the index already holds id {0}")]
    Exists(u32),
    #[error("the index holds no id {0}")]
    Missing(u32),
    #[error("{0}")]
    Options(String),
    #[error("the index engine failed: {0}")]
    Engine(String),
}

/// A concurrent index: every method takes `&self` and may be called from any thread.
pub struct Index {}

impl Index {
    pub fn new(options: Options) -> Result<Index, Error> {
        let _ = options;
        todo!()
    }

    pub fn options(&self) -> &Options {
        todo!()
    }

    /// Adds a vector under an id that the index does not hold.
    pub fn insert(&self, id: u32, vector: &[f32]) -> Result<(), Error> {
        let _ = (id, vector);
        todo!()
    }

    /// Gives an id that the index holds another vector.
    pub fn replace(&self, id: u32, vector: &[f32]) -> Result<(), Error> {
        let _ = (id, vector);
        todo!()
    }

    /// Takes an id out; the id may be used again.
    pub fn remove(&self, id: u32) -> Result<(), Error> {
        let _ = id;
        todo!()
    }

    /// The up to `k` nearest vectors, nearest first. With `k` at or above the count every vector
    /// is returned.
    pub fn search(&self, query: &[f32], k: usize) -> Result<Vec<Neighbour>, Error> {
        let _ = (query, k);
        todo!()
    }

    /// Vectors held.
    pub fn len(&self) -> usize {
        todo!()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of memory the index holds.
    pub fn memory_bytes(&self) -> usize {
        todo!()
    }
}
