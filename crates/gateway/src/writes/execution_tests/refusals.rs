//! Tests of refusals: by the node of a write or of an id, and by the gateway.

use super::*;

#[test]
fn the_insert_of_log_rows_is_prepared_again_without_the_client_seeing_it() {
    let setup = Setup::prepared();
    for client_frame in [
        plain_query(INSERT),
        plain_query(&format!("{INSERT} IF NOT EXISTS")),
    ] {
        let (first, execution) = setup.begin(&client_frame);
        let (request, execution) = goes_on(execution, &unprepared(LOG_ID));
        assert!(matches!(decoded(&request), Request::Prepare { .. }));
        let (again, execution) = goes_on(execution, &prepared_as(LOG_ID));
        let count = |frame: &Bytes| batch_of(frame).statements.len();
        assert_eq!(count(&first), count(&again));
        drop(execution);
    }
    // A node that keeps forgetting the statement does not get it forever.
    let (_, mut execution) = setup.begin(&plain_query(INSERT));
    for _ in 0..3 {
        let (_, preparing) = goes_on(execution, &unprepared(LOG_ID));
        (_, execution) = goes_on(preparing, &prepared_as(LOG_ID));
    }
    let NextWriteAction::AnswerWith(told) = answered(execution, &unprepared(LOG_ID)) else {
        panic!("the client is told of an id that it never heard of");
    };
    let told = Frame {
        header: header(&told, FrameDirection::Response),
        body: told.slice(HEADER_LENGTH..),
    };
    let (_, told) = Response::decode(&told, None, BODY_MAX).unwrap();
    assert!(
        matches!(&told, Response::Error(error) if error.kind == ErrorKind::Overloaded),
        "{told:?}"
    );
}

#[test]
fn an_id_that_the_node_does_not_know_is_the_clients_or_the_gateways() {
    let mut setup = Setup::prepared();
    let insert = "INSERT INTO products (id, name) VALUES (?, 'tea')";
    setup.prepare(b"insert", insert, &["id"]);
    let client_frame = execute(b"insert", MarkerValues::Positional(vec![int(7)]));
    let (_, execution) = setup.begin(&client_frame);
    is_the_answer(execution, &unprepared(b"insert"));
    // Another connection has already forgotten the id.
    let (_, execution) = setup.begin(&client_frame);
    setup.log.inserts.forget(&products());
    let (request, _) = goes_on(execution, &unprepared(LOG_ID));
    assert!(matches!(decoded(&request), Request::Prepare { .. }));
}

#[test]
fn a_refused_write_is_in_doubt_unless_something_may_have_been_written() {
    let refusals = [
        (error(ErrorKind::Invalid, "no such table"), true),
        (error(ErrorKind::Unauthorized, "may not"), true),
        (error(ErrorKind::ServerError, "who knows"), false),
        (timeout(), false),
    ];
    let setup = Setup::prepared();
    let conditional = plain_query(&format!("{INSERT} IF NOT EXISTS"));
    for (refusal, is_doubtful) in &refusals {
        // The refused request holds the log rows: together with the write, or before it.
        for client_frame in [&plain_query(INSERT), &conditional] {
            let (_, execution) = setup.begin(client_frame);
            match answered(execution, refusal) {
                NextWriteAction::InDoubt(origin) if *is_doubtful => {
                    assert_eq!(origin.frame, client_frame);
                }
                NextWriteAction::Answer if !is_doubtful => {}
                other => panic!("{refusal:?} {other:?}"),
            }
        }
        // The refused request is the client's own.
        let (_, execution) = setup.begin(&conditional);
        let (_, execution) = goes_on(execution, &Response::Void);
        let next = answered(execution, refusal);
        assert!(
            matches!(
                (&next, is_doubtful),
                (NextWriteAction::Answer, true) | (NextWriteAction::Ask(..), false)
            ),
            "{refusal:?} {next:?}"
        );
        // The refused request holds the log rows after the write.
        let (_, execution) = setup.begin(&conditional);
        let (_, execution) = goes_on(execution, &Response::Void);
        let (_, execution) = goes_on(execution, &applied(true));
        let next = answered(execution, refusal);
        assert!(
            matches!(next, NextWriteAction::AnswerWith(_)),
            "{refusal:?} {next:?}"
        );
    }
}

#[test]
fn no_write_goes_without_its_log_row() {
    let setup = Setup::new();
    let conditional = plain_query(&format!("{INSERT} IF NOT EXISTS"));
    let missing = error(ErrorKind::Invalid, "unconfigured table");
    for client_frame in [&conditional, &plain_query(INSERT)] {
        let (_, execution) = setup.begin(client_frame);
        let next = answered(execution, &missing);
        assert!(matches!(next, NextWriteAction::InDoubt(_)), "{next:?}");
    }

    let setup = Setup::prepared();
    let (_, execution) = setup.begin(&conditional);
    is_the_answer(execution, &timeout());
    // After the write the client gets the node's answer to it, even if a log row fails.
    let (_, execution) = setup.begin(&conditional);
    let (_, execution) = goes_on(execution, &Response::Void);
    let (_, execution) = goes_on(execution, &applied(true));
    match answered(execution, &timeout()) {
        NextWriteAction::AnswerWith(told) => assert_eq!(told, bytes_of(&response(&applied(true)))),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_write_whose_rows_are_not_known_is_refused() {
    let setup = Setup::prepared();
    let json = plain_query("INSERT INTO products JSON '{\"id\": 1}'");
    assert!(setup.take(&json).unwrap_err().message.contains("JSON"));
    let function = plain_query("INSERT INTO products (id) VALUES (f(1))");
    assert!(
        setup
            .take(&function)
            .unwrap_err()
            .message
            .contains("function f")
    );
    // A statement passes if Cassandra refuses it or if it touches no logged row.
    for text in [
        "UPDATE products SET name = 'x' WHERE name = 'y'",
        "DELETE FROM products WHERE id IN ()",
        "INSERT INTO others (id) VALUES (now())",
    ] {
        assert!(setup.take(&plain_query(text)).unwrap().is_none(), "{text}");
    }
}
