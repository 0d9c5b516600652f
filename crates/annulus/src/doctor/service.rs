//! The service that answers, if one does.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;
use store_api::ClientError;
use store_api::types::{
    ClockStatus, IndexInfo, IndexState, IndexStatus, Info, NodeStatus, TaskStatus,
};

use super::DoctorFinding;
use crate::operator::ServiceArguments;

/// The answers of a running service.
#[derive(Debug, Serialize)]
pub struct ServiceAnswers {
    status: NodeStatus,
    info: Info,
    clock: ClockStatus,
    indexes: Vec<IndexInfo>,
    tasks: Vec<TaskStatus>,
}

/// The context of an error of a service that answers, but not with its state.
#[derive(Clone, Copy, Debug)]
struct RefusedState;

impl Display for RefusedState {
    fn fmt(&self, formatter: &mut Formatter<'_>) -> fmt::Result {
        formatter.write_str("a service answers, but does not show its state")
    }
}

/// Whether a service answers, be it with an error.
pub fn is_there(answers: &anyhow::Result<ServiceAnswers>) -> bool {
    match answers {
        Ok(_) => true,
        Err(error) => error.is::<RefusedState>(),
    }
}

/// Gets the state of the service.
pub async fn read(asking: &ServiceArguments) -> anyhow::Result<ServiceAnswers> {
    let client = asking.client().await?;
    let explained = |error: ClientError| {
        let is_there = matches!(error, ClientError::Status { .. });
        let explained = asking.explain(error);
        match is_there {
            true => explained.context(RefusedState),
            false => explained,
        }
    };
    Ok(ServiceAnswers {
        status: client.node_status().await.map_err(explained)?,
        info: client.info().await.map_err(explained)?,
        clock: client.clock().await.map_err(explained)?,
        indexes: client.indexes().await.map_err(explained)?,
        tasks: client.tasks(false).await.map_err(explained)?,
    })
}

/// The findings about the service.
pub fn findings(answers: &anyhow::Result<ServiceAnswers>) -> Vec<DoctorFinding> {
    const SUBJECT: &str = "service";
    let answers = match answers {
        Ok(answers) => answers,
        Err(error) => {
            let remedy = "start it, or give its address and your login, if it should be seen here";
            return vec![DoctorFinding::advice(SUBJECT, format!("{error:#}"), remedy)];
        }
    };
    let version = &answers.info.version;
    let program = format!("{} {version}", answers.info.service);
    let mut findings = vec![match answers.status {
        NodeStatus::Serving if version != env!("CARGO_PKG_VERSION") => DoctorFinding::advice(
            SUBJECT,
            format!("{program} serves, another version than this program"),
            "restart it, if it was upgraded",
        ),
        NodeStatus::Serving => DoctorFinding::good(SUBJECT, format!("{program} serves")),
        _ => DoctorFinding::advice(
            SUBJECT,
            format!("{program} does not serve yet"),
            "wait, and see `annulus status` and `annulus tasks list`",
        ),
    }];
    findings.push(of_indexes(&answers.indexes));
    if answers.clock.lead_ms > 0 {
        let found = format!(
            "was set back by {} ms while the service ran",
            answers.clock.lead_ms
        );
        findings.push(DoctorFinding::wrong("clock", found, "run NTP"));
    }
    findings
}

fn of_indexes(indexes: &[IndexInfo]) -> DoctorFinding {
    const SUBJECT: &str = "indexes";
    let states: Vec<&IndexStatus> = indexes.iter().filter_map(|it| it.status.as_ref()).collect();
    let waiting = states.iter().filter(|it| it.status != IndexState::Serving);
    let waiting = waiting.count();
    let rows_without_room: usize = states.iter().map(|it| it.rows_without_room).sum();
    let found = format!("{}, of which {waiting} do not serve yet", indexes.len());
    match (waiting, rows_without_room) {
        (0, 0) => DoctorFinding::good(SUBJECT, format!("{}, all serve", indexes.len())),
        (_, 0) => DoctorFinding::advice(SUBJECT, found, "see `annulus tasks list`"),
        (_, rows) => DoctorFinding::wrong(
            SUBJECT,
            format!("{rows} rows have no room in their indexes"),
            "raise --memory-limit, or make room on the disk (docs/store.md)",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::super::FindingGrade;
    use super::*;

    fn answers(status: NodeStatus, version: &str, lead_ms: u64) -> ServiceAnswers {
        ServiceAnswers {
            status,
            info: Info {
                service: "annulus".to_owned(),
                version: version.to_owned(),
                engine: String::new(),
            },
            clock: ClockStatus { lead_ms },
            indexes: Vec::new(),
            tasks: Vec::new(),
        }
    }

    #[test]
    fn a_service_that_refuses_its_state_is_there() {
        let silent: anyhow::Result<ServiceAnswers> = Err(anyhow::anyhow!("no service answers"));
        assert!(!is_there(&silent));
        let refused = silent.map_err(|error| error.context(RefusedState));
        assert!(is_there(&refused));
        assert!(is_there(&Ok(answers(NodeStatus::Serving, "0.0.1", 0))));
    }

    #[test]
    fn a_service_is_judged_by_its_answers() {
        let grades = |answers| {
            let found = findings(&answers).into_iter();
            found.map(|finding| finding.grade).collect::<Vec<_>>()
        };
        let this = env!("CARGO_PKG_VERSION");
        let (good, advice) = (FindingGrade::Good, FindingGrade::Advice);
        assert_eq!(
            grades(Ok(answers(NodeStatus::Serving, this, 0))),
            [good, good]
        );
        assert_eq!(
            grades(Ok(answers(NodeStatus::Serving, "0.0.1", 0))),
            [advice, good]
        );
        assert_eq!(
            grades(Ok(answers(NodeStatus::Bootstrapping, this, 0))),
            [advice, good]
        );
        let set_back = grades(Ok(answers(NodeStatus::Serving, this, 7)));
        assert_eq!(set_back, [good, good, FindingGrade::Wrong]);
        assert_eq!(grades(Err(anyhow::anyhow!("no service answers"))), [advice]);
    }
}
