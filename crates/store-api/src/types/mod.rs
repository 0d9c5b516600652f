//! Bodies of requests and answers (contract, section 1.3).

mod ann;
mod debug;
mod filter;
mod index;
mod node;
mod repair;
mod scrub;
mod task;

pub use ann::{AnnRequest, AnnResponse, EXACT_HEADER, PrimaryKeys, SHORT_HEADER};
pub use debug::{SearchDebug, SearchPlan};
pub use filter::{Filter, Restriction};
pub use index::{IndexInfo, IndexOptions, IndexRecall, IndexState, IndexStatus};
pub use node::{ClockStatus, Info, NodeStatus, Unavailable, UnavailableReason};
pub use repair::{RepairRequest, RepairSchedule, RepairScheduleUpdate, RepairSpeed, RepairStatus};
pub use scrub::ScrubRequest;
pub use task::{TaskState, TaskStatus, TaskTokenRange, TaskTree};
