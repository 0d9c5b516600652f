//! Bodies of requests and answers (contract, section 1.3).

mod backup;
mod debug;
mod filter;
mod indexes;
mod maintenance;
mod map;
mod recall;
mod repair;
mod scrub;
mod search;
mod service;
mod tables;
mod task;
mod words;

pub use backup::{
    BackupCompression, BackupLocationStatus, BackupPlace, BackupPreview, BackupRequest,
    BackupScheduleStatus, BackupsStatus, DrillRequest, LocalSnapshotRequest, RestoreRequest,
};
pub use debug::{SearchDebug, SearchPlan};
pub use filter::{Filter, FilterNode, Restriction};
pub use indexes::{IndexInfo, IndexMemory, IndexOptions, IndexRecall, IndexState, IndexStatus};
pub use maintenance::{MaintenanceRequest, MaintenanceStatus};
pub use map::{IndexMap, MapProgress, MapRequest};
pub use recall::{MeasuredRecall, RecallRequest};
pub use repair::{RepairRequest, RepairSchedule, RepairScheduleUpdate, RepairSpeed, RepairStatus};
pub use scrub::ScrubRequest;
pub use search::{AnnRequest, AnnResponse, EXACT_HEADER, PrimaryKeys, SHORT_HEADER};
pub use service::{ClockStatus, Info, NodeStatus, Unavailable, UnavailableReason};
pub use tables::TableSize;
pub use task::{TaskState, TaskStatus, TaskTokenRange, TaskTree};
pub use words::{
    Bm25Request, Bm25Response, HighlightForm, HighlightRequest, HighlightResponse, MatchesRequest,
    MatchesResponse, ScoresRequest, ScoresResponse,
};
