//! Tests of the load generator with workers that sleep.

use hdrhistogram::Histogram;

use super::*;

/// A worker that sleeps for `usual`, and for `stall` longer at the request `stall_at`.
struct Sleeper {
    usual: Duration,
    stall_at: u64,
    stall: Duration,
}

impl RepeatedRequest for Sleeper {
    async fn perform(&mut self, number: u64) -> Result<AnsweredRequest, RequestFailure> {
        let stall = if number == self.stall_at {
            self.stall
        } else {
            Duration::ZERO
        };
        tokio::time::sleep(self.usual + stall).await;
        if number % 10 == 9 {
            return Err(RequestFailure("each tenth".to_owned()));
        }
        Ok(AnsweredRequest {
            recall: Some(0.5),
            ..AnsweredRequest::now()
        })
    }
}

fn sleepers(count: usize, stall: Duration) -> Vec<Sleeper> {
    let sleeper = |_| Sleeper {
        usual: Duration::from_millis(1),
        stall_at: 20,
        stall,
    };
    (0..count).map(sleeper).collect()
}

fn plan(rate_per_s: Option<f64>, length: TrafficLength) -> TrafficPlan {
    TrafficPlan {
        rate_per_s,
        length,
        warm_up: Duration::ZERO,
        keep_requests: false,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_counted_answered_or_failed() {
    let plan = plan(None, TrafficLength::Requests(100));
    let workers = sleepers(7, Duration::ZERO);
    let measured = run(&plan, workers, &ProgressBar::hidden()).await.unwrap();
    assert_eq!(measured.latencies.len(), 90);
    assert_eq!(measured.errors.get("each tenth"), Some(&10));
    assert_eq!(measured.recall(), Some(0.5));
    let of_intervals: u64 = measured.intervals.iter().map(|i| i.operations).sum();
    assert_eq!(of_intervals, 90);
    assert!(measured.pacer_lateness.is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_are_kept_as_they_were_due() {
    let plan = TrafficPlan {
        keep_requests: true,
        ..plan(Some(1_000.0), TrafficLength::Requests(50))
    };
    let before_ns = monotonic_ns();
    let workers = sleepers(3, Duration::from_millis(30));
    let measured = run(&plan, workers, &ProgressBar::hidden()).await.unwrap();
    assert!((before_ns..monotonic_ns()).contains(&measured.begin_ns));
    let requests = &measured.requests;
    assert_eq!(requests.len(), 50);
    let answered: Vec<_> = requests.iter().filter(|r| r.answered).collect();
    assert_eq!(answered.len() as u64, measured.latencies.len());
    let slowest = answered.iter().map(|r| r.ended - r.due).max().unwrap();
    let recorded = measured.latencies.max() as f64 / slowest.as_nanos() as f64;
    assert!((recorded - 1.0).abs() < 2e-3, "{recorded}");
    for (number, request) in requests.iter().enumerate() {
        assert_eq!(request.due, pacer::due_after(number as u64, 1_000.0));
        assert!(request.ended >= request.due + Duration::from_millis(1));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pacer_is_not_late_when_the_worker_is() {
    // There is one worker, which stalls, so most requests wait for it.
    let open = plan(Some(200.0), TrafficLength::Requests(150));
    let workers = sleepers(1, Duration::from_millis(500));
    let measured = run(&open, workers, &ProgressBar::hidden()).await.unwrap();
    let lateness = measured.pacer_lateness.as_ref().unwrap();
    assert_eq!(lateness.len(), 150);
    let median = |times: &Histogram<u64>| Duration::from_nanos(times.value_at_quantile(0.5));
    let (late, latency) = (median(lateness), median(&measured.latencies));
    assert!(latency > Duration::from_millis(100), "{latency:?}");
    assert!(late < latency / 4, "{late:?} of {latency:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stall_delays_all_that_were_due_in_an_open_loop_only() {
    let stall = Duration::from_millis(500);
    let slow = |measured: &TrafficResults| {
        let beyond = Duration::from_millis(100).as_nanos() as u64;
        measured.latencies.count_between(beyond, u64::MAX)
    };
    // There is one worker, so requests that are due during the stall have to wait.
    let open = plan(Some(200.0), TrafficLength::Requests(150));
    let workers = sleepers(1, stall);
    let measured = run(&open, workers, &ProgressBar::hidden()).await.unwrap();
    let delayed = slow(&measured);
    assert!(delayed > 40, "{delayed}");

    let closed = plan(None, TrafficLength::Requests(150));
    let workers = sleepers(1, stall);
    let measured = run(&closed, workers, &ProgressBar::hidden()).await.unwrap();
    // One, and some more if the machine stops now and then.
    let stalled = slow(&measured);
    assert!((1..delayed / 4).contains(&stalled), "{stalled}");
}

#[tokio::test(flavor = "multi_thread")]
async fn requests_that_were_not_sent_in_time_are_counted() {
    // 1,000 a second are due, one worker manages fewer than half.
    let open = plan(
        Some(1_000.0),
        TrafficLength::Duration(Duration::from_millis(500)),
    );
    let workers = sleepers(1, Duration::ZERO);
    let measured = run(&open, workers, &ProgressBar::hidden()).await.unwrap();
    let errors: u64 = measured.errors.values().sum();
    let all = measured.latencies.len() + errors + measured.not_sent;
    assert_eq!(all, 500);
    assert!(measured.not_sent > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_warm_up_does_not_count() {
    let plan = TrafficPlan {
        warm_up: Duration::from_millis(100),
        keep_requests: true,
        ..plan(None, TrafficLength::Requests(20))
    };
    let workers = sleepers(2, Duration::ZERO);
    let measured = run(&plan, workers, &ProgressBar::hidden()).await.unwrap();
    assert_eq!(measured.requests.len(), 20);
    let errors: u64 = measured.errors.values().sum();
    assert_eq!(measured.latencies.len() + errors, 20);
}
