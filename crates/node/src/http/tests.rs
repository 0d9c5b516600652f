//! The table of routes and their description. Requests over HTTP are in `tests/http_tables`.

use axum::routing::MethodFilter;
use http_server::RequiredRight;
use serde_json::Value;

use super::table;

fn description() -> Value {
    serde_json::from_str(include_str!("openapi.json")).unwrap()
}

#[test]
fn every_route_is_private_and_described_with_an_example() {
    let document = description();
    let mut described = 0;
    for row in table() {
        let method = match row.method() {
            MethodFilter::GET => "get",
            MethodFilter::PUT => "put",
            MethodFilter::POST => "post",
            MethodFilter::DELETE => "delete",
            other => panic!("{other:?}"),
        };
        assert!(row.is_private(), "{}", row.path());
        // The handler lets no one in without the login that statements need.
        assert_eq!(row.right(), RequiredRight::Nothing);
        let operation = &document["paths"][row.path()][method];
        assert!(operation.is_object(), "{method} {}", row.path());
        let body = &operation["requestBody"]["content"]["application/json"];
        let has_example = body.get("example").or(body.get("examples")).is_some();
        assert!(has_example || body.is_null(), "{method} {}", row.path());
        described += 1;
    }
    let paths = document["paths"].as_object().unwrap();
    let methods = paths.values().map(|path| path.as_object().unwrap().len());
    assert_eq!(methods.sum::<usize>(), described);
}

#[test]
fn routes_that_change_something_need_the_header() {
    let document = description();
    for row in table() {
        let is_read = row.method() == MethodFilter::GET || row.path().ends_with("/search");
        let method = match row.method() {
            MethodFilter::PUT => "put",
            MethodFilter::POST => "post",
            MethodFilter::DELETE => "delete",
            _ => "get",
        };
        let parameters = document["paths"][row.path()][method]["parameters"].to_string();
        assert_eq!(
            parameters.contains("X-Requested-With"),
            !is_read,
            "{}",
            row.path()
        );
    }
}
