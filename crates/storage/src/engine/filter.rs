//! The hook that drops entries when fjall rewrites its files.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use bytes::Bytes;
use fjall::compaction::filter::{
    CompactionFilter, CompactionFilterResult, Context, Factory, ItemAccessor, Verdict,
};

use super::SpaceId;

/// The fate of an entry.
pub(crate) enum EntryVerdict {
    Keep,
    Remove,
    /// The entry gets another value.
    Replace(Bytes),
}

/// Decides the fate of each entry of one rewriting, in the order of their keys. It sees older
/// versions too. The engine takes no account of open snapshots, so the examiner has to.
pub(crate) type CompactionFilterFn = Box<dyn FnMut(&[u8], &EntryValue<'_>) -> EntryVerdict + Send>;

/// Gives the examiner of a space; `None` keeps all its entries.
pub(crate) type CompactionFilterSource =
    Arc<dyn Fn(SpaceId, EntryLocation) -> Option<CompactionFilterFn> + Send + Sync>;

/// The place whose entries are examined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryLocation {
    /// The files of a space. Those of a space in memory keep all that the memory has.
    Files,
    /// A space in memory, together with its files.
    Memory,
}

/// The value of an entry.
pub(crate) enum EntryValue<'a> {
    /// It is not read yet.
    Unread(&'a ItemAccessor<'a>),
    /// It is in memory.
    Held(&'a Bytes),
}

impl EntryValue<'_> {
    /// Whether the value is in another file, which costs a look there.
    pub(crate) fn is_separated(&self) -> bool {
        matches!(self, EntryValue::Unread(item) if item.is_indirection())
    }

    /// Reads the value; `None` if it can't be read.
    pub(crate) fn value(&self) -> Option<Bytes> {
        let item = match self {
            EntryValue::Held(value) => return Some(Bytes::clone(value)),
            EntryValue::Unread(item) => item,
        };
        match item.value() {
            Ok(value) => Some(value.into()),
            Err(error) => {
                tracing::warn!(%error, "a stored value could not be read while files were rewritten");
                None
            }
        }
    }
}

/// The function from which fjall gets the filter of a space, by the space's name.
type SpaceFilterAssigner = Arc<dyn Fn(&str) -> Option<Arc<dyn Factory>> + Send + Sync>;

pub(super) fn assigner(examiners: CompactionFilterSource) -> SpaceFilterAssigner {
    Arc::new(move |name| {
        let space = SpaceId::parse(name)?;
        Some(Arc::new(SpaceFactory {
            space,
            examiners: AssertUnwindSafe(Arc::clone(&examiners)),
        }) as Arc<dyn Factory>)
    })
}

struct SpaceFactory {
    space: SpaceId,
    /// Safe across a panic, as examiners have no state that one could leave half-changed.
    examiners: AssertUnwindSafe<CompactionFilterSource>,
}

impl Factory for SpaceFactory {
    fn name(&self) -> &'static str {
        "annulus"
    }

    fn make_filter(&self, _context: &Context) -> Box<dyn CompactionFilter> {
        Box::new(SpaceFilter((self.examiners)(
            self.space,
            EntryLocation::Files,
        )))
    }
}

struct SpaceFilter(Option<CompactionFilterFn>);

impl CompactionFilter for SpaceFilter {
    fn filter_item(
        &mut self,
        item: ItemAccessor<'_>,
        _context: &Context,
    ) -> CompactionFilterResult {
        let Some(examine) = &mut self.0 else {
            return Ok(Verdict::Keep);
        };
        Ok(match examine(item.key(), &EntryValue::Unread(&item)) {
            EntryVerdict::Keep => Verdict::Keep,
            EntryVerdict::Remove => Verdict::Remove,
            EntryVerdict::Replace(value) => Verdict::ReplaceValue(value.into()),
        })
    }
}
