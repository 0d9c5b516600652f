//! Tests of writes while the batch log does not answer, as a node has died a moment ago. A write
//! that has its quorum does not fail.

use super::*;

fn batch_log_timeout() -> Response {
    let kind = ErrorKind::WriteTimeout {
        consistency: 2,
        received: 1,
        block_for: 2,
        write_type: "BATCH_LOG",
        contentions: None,
    };
    error(kind, "late")
}

/// Whether the first request of a write holds its log rows.
fn goes_together(setup: &Setup, asked: &Bytes) -> bool {
    batch_of(&setup.begin(asked).0).kind == BatchKind::Logged
}

#[test]
fn a_write_goes_around_it_and_those_that_follow_begin_so() {
    let setup = Setup::prepared();
    let asked = plain_query(INSERT);
    let (request, execution) = setup.begin(&asked);
    assert_eq!(batch_of(&request).kind, BatchKind::Logged);

    let (request, execution) = goes_on(execution, &batch_log_timeout());
    assert_eq!(log_rows_of(&request), [(2, vec![int(7)])]);
    let (request, execution) = goes_on(execution, &Response::Void);
    assert_eq!(request, asked);
    let (request, execution) = goes_on(execution, &Response::Void);
    assert_eq!(log_rows_of(&request), [(2, vec![int(7)])]);
    let NextWriteAction::AnswerWith(answer) = answered(execution, &Response::Void) else {
        panic!("the client has no answer");
    };
    assert_eq!(answer, bytes_of(&response(&Response::Void)));

    assert!(!goes_together(&setup, &asked));
    let unlogged = batch(BatchKind::Unlogged, vec![by_text(INSERT, vec![])]);
    assert!(!goes_together(&setup, &unlogged));
}

#[test]
fn a_timeout_of_the_write_itself_is_answered_with() {
    let setup = Setup::prepared();
    let asked = plain_query(INSERT);
    is_the_answer(setup.begin(&asked).1, &timeout());
    assert!(goes_together(&setup, &asked));
}

#[test]
fn a_write_that_must_not_run_twice_is_left_to_the_client() {
    for text in [
        "UPDATE products SET names = names + ['x'] WHERE id = 7",
        "UPDATE products SET names = ['x'] + names WHERE id = 7",
        "UPDATE products SET names[0] = 'x' WHERE id = 7",
        "DELETE names[0] FROM products WHERE id = 7",
    ] {
        let setup = Setup::prepared();
        let asked = plain_query(text);
        is_the_answer(setup.begin(&asked).1, &batch_log_timeout());
        assert!(!goes_together(&setup, &asked), "{text}");
    }
}

#[test]
fn a_client_that_asks_for_the_batch_log_gets_it() {
    let setup = Setup::prepared();
    let asked = batch(BatchKind::Logged, vec![by_text(INSERT, vec![])]);
    is_the_answer(setup.begin(&asked).1, &batch_log_timeout());
    let (request, _) = setup.begin(&asked);
    assert_eq!(batch_of(&request).statements.len(), 2);
}
