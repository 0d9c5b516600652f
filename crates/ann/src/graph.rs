//! The graph: HNSW by the `usearch` library, which shows nowhere else.
//!
//! What the library does not say and its source does (2.26), and what is made of it here:
//!
//! - A search reads the links of the lowest level, the entry point and the number of levels without
//!   a lock, and trips over a node that is being made. So nothing runs beside a change: changes take
//!   `&mut self`, and [`crate::Index`] puts a lock around.
//! - Two changes side by side are safe for memory, but now and then leave a vector that no walk
//!   reaches (its issue 735; of 9,800 film embeddings inserted by two threads 12, by one thread
//!   none). So changes take turns.
//! - A removed vector's node is given to the next vector inserted. Links to it stay, and its new
//!   links push older ones out, until vectors that nobody touched can no longer be reached: of 2,000
//!   vectors half of which were replaced 40 times, one in nine. So nothing is ever removed from the
//!   library's index. Nodes are only added; here is kept which of them is current for its id, and
//!   the others serve as waypoints until the graph is made anew (`renewal.rs`).
//! - Each search and each change needs one of the contexts reserved beforehand, or fails.
//! - Memory is taken for as many nodes as were reserved; there is no growth without a reserve.

use std::collections::HashMap;

use usearch::{IndexOptions, MetricKind, ScalarKind, VectorType, b1x8};

use crate::code::{Code, Float, Form};
use crate::id_set::IdSet;
use crate::{Error, Metric, Options};

/// Nodes reserved at first.
const CAPACITY_MIN: usize = 64;
/// Below two connections there are no levels.
const CONNECTIONS_MIN: usize = 2;
/// Bytes of the fixed parts of a context.
const CONTEXT_BYTES: usize = 512;
/// Bytes of a lock, of which there are four for each connection of each context, and at least 256.
const LOCK_BYTES: usize = 128;
/// Bytes of an entry in the engine's table from keys to nodes, which is at most two thirds full.
const TABLE_ENTRY_BYTES: usize = 16;
/// Bytes of a node's two pointers, to its links and to its vector.
const NODE_POINTER_BYTES: usize = 16;
/// Bytes of an entry in the table from ids to serials: both of them and a control byte.
const SERIAL_ENTRY_BYTES: usize = 9;

/// A graph over vectors in their coded form.
pub(crate) struct Graph {
    engine: usearch::Index,
    made_with: Options,
    form: Form,
    contexts: usize,
    next_serial: u32,
    /// The current node of each id, by its serial number.
    serials: HashMap<u32, u32>,
    /// All current nodes.
    current: IdSet,
}

impl Graph {
    /// `contexts` walks may go on at a time.
    pub(crate) fn new(options: &Options, contexts: usize) -> Result<Graph, Error> {
        let form = Form::of(options);
        let engine = usearch::Index::new(&IndexOptions {
            dimensions: options.dimensions,
            metric: engine_metric(form, options.metric),
            quantization: engine_scalar(form),
            connectivity: options.max_connections.max(CONNECTIONS_MIN),
            expansion_add: options.build_beam_width,
            // Every walk says its own width; this is the floor under it.
            expansion_search: 1,
            multi: false,
        })
        .map_err(engine_error)?;
        Ok(Graph {
            engine,
            made_with: *options,
            form,
            contexts,
            next_serial: 0,
            serials: HashMap::new(),
            current: IdSet::default(),
        })
    }

    /// An empty graph of the same kind.
    pub(crate) fn another(&self) -> Result<Graph, Error> {
        Graph::new(&self.made_with, self.contexts)
    }

    /// Vectors held.
    pub(crate) fn len(&self) -> usize {
        self.serials.len()
    }

    /// Nodes that are walked through, those of earlier vectors included.
    pub(crate) fn nodes(&self) -> usize {
        self.engine.size()
    }

    pub(crate) fn contains(&self, id: u32) -> bool {
        self.serials.contains_key(&id)
    }

    /// Gives `id` a vector, its first or another one. If that fails all is as before.
    pub(crate) fn put(&mut self, id: u32, code: &Code) -> Result<(), Error> {
        self.make_room()?;
        let serial = self.next_serial;
        let Some(next_serial) = serial.checked_add(1) else {
            return Err(Error::Engine("the graph has no numbers left".into()));
        };
        // A failed attempt may have used up the number.
        self.next_serial = next_serial;
        let key = key(serial, id);
        match code {
            Code::Floats(floats) => self.engine.add(key, floats),
            Code::Bytes(bytes) => self.engine.add(key, bytes),
            Code::Bits(bits) => self.engine.add(key, b1x8::from_u8s(bits)),
        }
        .map_err(engine_error)?;
        if let Some(earlier) = self.serials.insert(id, serial) {
            self.current.remove(earlier);
        }
        self.current.insert(serial);
        Ok(())
    }

    /// Takes the vector of `id` out, if there is one.
    pub(crate) fn take(&mut self, id: u32) {
        if let Some(serial) = self.serials.remove(&id) {
            self.current.remove(serial);
        }
    }

    /// The ids of up to `beam` vectors near `query`, nearest first as far as the graph can tell.
    pub(crate) fn walk(&self, query: &Code, beam: usize) -> Result<Vec<u32>, Error> {
        match query {
            Code::Floats(floats) => self.near(floats, beam),
            Code::Bytes(bytes) => self.near(bytes, beam),
            Code::Bits(bits) => self.near(b1x8::from_u8s(bits), beam),
        }
    }

    fn near<T: VectorType>(&self, query: &[T], beam: usize) -> Result<Vec<u32>, Error> {
        if self.len() == 0 {
            return Ok(Vec::new());
        }
        let found = if self.len() == self.nodes() {
            self.engine.search(query, beam)
        } else {
            let is_current = |key| self.current.contains(serial_of(key));
            self.engine.filtered_search(query, beam, is_current)
        };
        let keys = found.map_err(engine_error)?.keys;
        Ok(keys.into_iter().map(id_of).collect())
    }

    /// The vector kept under `id`, as floats; a direction in bytes is a 127th as long. `into` has
    /// room for one.
    pub(crate) fn floats<'a>(&self, id: u32, into: &'a mut [f32]) -> Result<&'a [f32], Error> {
        self.read(id, into)?;
        Ok(into)
    }

    /// The bits kept under `id`. `into` has a byte for each dimension (the engine asks for that
    /// many), of which only as many as the bits need are used.
    pub(crate) fn bits<'a>(&self, id: u32, into: &'a mut [u8]) -> Result<&'a [u8], Error> {
        self.read(id, b1x8::from_mut_u8s(into))?;
        Ok(&into[..self.form.bytes(self.made_with.dimensions)])
    }

    /// What is kept under `id`. To put it again changes nothing.
    pub(crate) fn code(&self, id: u32) -> Result<Code, Error> {
        let dimensions = self.made_with.dimensions;
        Ok(match self.form {
            Form::Direction(_) | Form::Floats(_) => {
                let mut floats = vec![0.0; dimensions];
                self.read(id, &mut floats)?;
                Code::Floats(floats)
            }
            Form::ByteDirection => {
                let mut bytes = vec![0i8; dimensions];
                self.read(id, &mut bytes)?;
                Code::Bytes(bytes)
            }
            Form::Bits => Code::Bits(self.bits(id, &mut vec![0; dimensions])?.to_vec()),
        })
    }

    fn read<T: VectorType>(&self, id: u32, into: &mut [T]) -> Result<(), Error> {
        let lost = || Error::Engine(format!("id {id} is not in the graph"));
        let serial = *self.serials.get(&id).ok_or_else(lost)?;
        match self.engine.get(key(serial, id), into) {
            Ok(0) => Err(lost()),
            Ok(_) => Ok(()),
            Err(error) => Err(engine_error(error)),
        }
    }

    /// Bytes in use: links, vectors, tables, locks and contexts, without what the engine has
    /// reserved of the address space only, and without the scratch space of walks.
    pub(crate) fn memory_bytes(&self) -> usize {
        let tapes = self.engine.memory_stats();
        let links = tapes.graph_allocated - tapes.graph_reserved;
        let vectors = tapes.vectors_allocated - tapes.vectors_reserved;
        let serials = self.serials.capacity() * SERIAL_ENTRY_BYTES + self.current.memory_bytes();
        links + vectors + serials + self.tables_bytes()
    }

    /// What the engine allocates with the first reserve, and anew with each.
    fn tables_bytes(&self) -> usize {
        let capacity = self.engine.capacity();
        if capacity == 0 {
            return 0;
        }
        let entries = (capacity * 3).div_ceil(2).next_power_of_two();
        let tables = capacity * NODE_POINTER_BYTES + entries * TABLE_ENTRY_BYTES;
        let links_max = 2 * self.made_with.max_connections.max(CONNECTIONS_MIN);
        let locks = (4 * self.contexts * links_max).max(256).next_power_of_two();
        let context = CONTEXT_BYTES + self.form.bytes(self.made_with.dimensions);
        tables + locks * LOCK_BYTES + self.contexts * context
    }

    /// Doubles the reserved nodes when none of them is left.
    fn make_room(&mut self) -> Result<(), Error> {
        let capacity = self.engine.capacity();
        if self.nodes() < capacity {
            return Ok(());
        }
        let capacity = (2 * capacity).max(CAPACITY_MIN);
        let reserved = self
            .engine
            .reserve_capacity_and_threads(capacity, self.contexts);
        reserved.map_err(engine_error)
    }
}

/// What the engine knows a node by. Different for all nodes of an id.
fn key(serial: u32, id: u32) -> u64 {
    u64::from(serial) << 32 | u64::from(id)
}

fn serial_of(key: u64) -> u32 {
    (key >> 32) as u32
}

fn id_of(key: u64) -> u32 {
    key as u32
}

/// How the engine measures vectors of this form.
fn engine_metric(form: Form, metric: Metric) -> MetricKind {
    match (form, metric) {
        (Form::Bits, _) => MetricKind::Hamming,
        (Form::ByteDirection, _) => MetricKind::Cos,
        (Form::Direction(_), _) => MetricKind::IP,
        (Form::Floats(_), Metric::Euclidean) => MetricKind::L2sq,
        (Form::Floats(_), _) => MetricKind::IP,
    }
}

/// What the engine keeps vectors of this form as.
fn engine_scalar(form: Form) -> ScalarKind {
    match form {
        Form::Direction(Float::F32) | Form::Floats(Float::F32) => ScalarKind::F32,
        Form::Direction(Float::F16) | Form::Floats(Float::F16) => ScalarKind::F16,
        Form::Direction(Float::Bf16) | Form::Floats(Float::Bf16) => ScalarKind::BF16,
        Form::ByteDirection => ScalarKind::I8,
        Form::Bits => ScalarKind::B1,
    }
}

fn engine_error(error: impl std::fmt::Display) -> Error {
    Error::Engine(error.to_string())
}
