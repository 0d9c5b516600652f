//! Tests of writes that have their log rows around them, as they can't share a batch, and of log
//! rows that come again, as the first were late.

use super::*;

#[test]
fn a_condition_has_its_log_rows_around_it() {
    let conditional = format!("{INSERT} IF NOT EXISTS");
    for (answer, is_written) in [
        (applied(true), true),
        (timeout(), true),
        (error(ErrorKind::ServerError, "unknown"), true),
        (applied(false), false),
        (error(ErrorKind::Invalid, "no"), false),
    ] {
        let setup = Setup::prepared();
        let client_frame = encode(
            &Request::Query {
                statement: conditional.clone(),
                parameters: QueryParameters::default(),
            },
            ProtocolVersion::V4,
            STREAM,
            FrameFlags::TRACING,
            &[],
        );
        let (request, execution) = setup.begin(&client_frame);
        assert_eq!(log_rows_of(&request), [(2, vec![int(7)])]);
        let first_time = batch_of(&request).statements[0].values[1].clone();
        let (request, execution) = goes_on(execution, &Response::Void);
        assert_eq!(request, client_frame, "as it came");
        if !is_written {
            is_the_answer(execution, &answer);
            continue;
        }
        let (request, execution) = goes_on(execution, &answer);
        assert_eq!(log_rows_of(&request), [(2, vec![int(7)])]);
        assert_ne!(batch_of(&request).statements[0].values[1], first_time);
        match answered(execution, &Response::Void) {
            NextWriteAction::AnswerWith(told) => assert_eq!(told, bytes_of(&response(&answer))),
            other => panic!("{other:?}"),
        }
    }
}

/// A [`Setup`] with both inserts prepared, in which every log row comes late.
fn late() -> Setup {
    let setup = Setup {
        log: Arc::new(ChangeLog::new(
            5 << 10,
            Duration::ZERO,
            Arc::default(),
            Arc::default(),
        )),
        ..Setup::new()
    };
    for table in [products(), events()] {
        setup.log.inserts.remember(&table, LOG_ID);
    }
    setup
}

#[test]
fn a_log_row_that_came_late_is_written_again_before_the_client_is_answered() {
    let conditional = format!("{INSERT} IF NOT EXISTS");
    for (text, requests) in [(INSERT, 1), (conditional.as_str(), 2)] {
        let setup = late();
        let (request, mut execution) = setup.begin(&plain_query(text));
        let mut times = vec![batch_of(&request).statements.last().unwrap().values[1].clone()];
        for _ in 1..requests {
            (_, execution) = goes_on(execution, &Response::Void);
        }
        let answer = match requests {
            1 => Response::Void,
            _ => applied(true),
        };
        // Log rows come once after the write, and twice more as those are late too.
        let (mut request, mut execution) = goes_on(execution, &answer);
        for more in [true, true, false] {
            assert_eq!(log_rows_of(&request), [(2, vec![int(7)])], "{text}");
            times.push(batch_of(&request).statements[0].values[1].clone());
            if more {
                (request, execution) = goes_on(execution, &Response::Void);
                continue;
            }
            match answered(execution, &Response::Void) {
                NextWriteAction::AnswerWith(told) => assert_eq!(told, bytes_of(&response(&answer))),
                other => panic!("{other:?}"),
            }
            break;
        }
        let distinct: std::collections::HashSet<_> =
            times.iter().map(|time| format!("{time:?}")).collect();
        assert_eq!(distinct.len(), 4, "each has a time of its own");
    }
}

#[test]
fn a_late_write_that_may_not_have_come_about_is_answered_as_it_is() {
    let setup = late();
    let (_, execution) = setup.begin(&plain_query(INSERT));
    is_the_answer(execution, &timeout());
}

#[test]
fn log_rows_around_a_write_have_its_consistency_but_for_any() {
    let setup = Setup::prepared();
    for (level, of_rows) in [
        (Consistency::LocalQuorum, Consistency::LocalQuorum),
        (Consistency::Any, Consistency::One),
    ] {
        let parameters = QueryParameters {
            consistency: level,
            ..QueryParameters::default()
        };
        let conditional = format!("{INSERT} IF NOT EXISTS");
        let (request, _) = setup.begin(&query(&conditional, parameters));
        assert_eq!(batch_of(&request).consistency, of_rows);
    }
}

#[test]
fn a_conditional_batch_and_a_batch_as_text_go_around() {
    let setup = Setup::prepared();
    let conditional = format!("{INSERT} IF NOT EXISTS");
    let as_text = "BEGIN BATCH DELETE FROM products WHERE id = 7; APPLY BATCH";
    for (client_frame, operation) in [
        (
            batch(BatchKind::Logged, vec![by_text(&conditional, vec![])]),
            2,
        ),
        (plain_query(as_text), 4),
    ] {
        let (request, execution) = setup.begin(&client_frame);
        assert_eq!(log_rows_of(&request), [(operation, vec![int(7)])]);
        assert_eq!(goes_on(execution, &Response::Void).0, client_frame);
    }
}

#[test]
fn a_write_that_is_too_large_for_a_batch_goes_around() {
    let mut setup = Setup::prepared();
    setup.prepare(
        b"insert",
        "INSERT INTO products (id, name) VALUES (?, ?)",
        &[],
    );
    let of_length = |length: usize| {
        let name = text(&"x".repeat(length));
        execute(b"insert", MarkerValues::Positional(vec![int(7), name]))
    };
    let (request, execution) = setup.begin(&of_length(4_000));
    assert_eq!(batch_of(&request).kind, BatchKind::Logged);
    // The estimate may be wrong, or Cassandra's limit lower. The write then goes around.
    let too_large = error(ErrorKind::Invalid, "Batch too large");
    let (request, execution) = goes_on(execution, &too_large);
    assert_eq!(log_rows_of(&request), [(2, vec![int(7)])]);
    assert_eq!(goes_on(execution, &Response::Void).0, of_length(4_000));

    let (request, execution) = setup.begin(&of_length(5_000));
    assert_eq!(log_rows_of(&request), [(2, vec![int(7)])]);
    assert_eq!(goes_on(execution, &Response::Void).0, of_length(5_000));
}

#[test]
fn many_log_rows_go_in_several_requests_and_all_before_the_write() {
    let setup = Setup::prepared();
    let ids: Vec<String> = (0..25).map(|id| id.to_string()).collect();
    let delete = format!("DELETE FROM products WHERE id IN ({})", ids.join(", "));
    let client_frame = plain_query(&delete);
    let (mut request, mut execution) = setup.begin(&client_frame);
    let mut rows = Vec::new();
    for expected in [10, 10, 5] {
        let more = log_rows_of(&request);
        assert_eq!(more.len(), expected);
        rows.extend(more);
        (request, execution) = goes_on(execution, &Response::Void);
    }
    let expected: Vec<_> = (0..25).map(|id| (4, vec![int(id)])).collect();
    assert_eq!(rows, expected);
    assert_eq!(request, client_frame);
    let mut after = 0;
    let mut next = answered(execution, &Response::Void);
    while let NextWriteAction::Ask(request, execution) = next {
        after += log_rows_of(&request).len();
        next = answered(*execution, &Response::Void);
    }
    assert_eq!(after, 25);
    assert!(matches!(next, NextWriteAction::AnswerWith(_)));
}
