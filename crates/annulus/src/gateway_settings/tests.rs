use clap::Args;

use super::*;

fn file(text: &str) -> GatewaySettings {
    GatewaySettings::of_file(toml::from_str(text).unwrap()).unwrap()
}

#[test]
fn every_setting_stands_in_the_file_under_its_long_name() {
    let settings = file(
        "tls-cert-path = \"a\"\ncassandra-certificate-file = \"b\"\nvector-store-own-zone = \"c\"\n\
         tls-file-check-interval = \"5s\"\nlisten = \"127.0.0.2\"",
    );
    assert_eq!(settings.tls.tls_cert_path, Some("a".into()));
    assert_eq!(settings.tls.cassandra_certificate_file, Some("b".into()));
    assert_eq!(
        settings.tls.tls_file_check_interval,
        Some("5s".parse().unwrap())
    );
    let zone = settings.vector_store.vector_store_own_zone;
    assert_eq!(zone.as_deref(), Some("c"));
    assert_eq!(settings.listen, Some(IpAddr::from([127, 0, 0, 2])));
    // The file knows all settings of the command line. Those that may be given several times are
    // tables there.
    let known = GatewaySettings::augment_args(clap::Command::new("settings"));
    for argument in known
        .get_arguments()
        .filter(|argument| !argument.is_hide_set())
    {
        let name = match argument.get_long().unwrap() {
            "gateway" => "gateways",
            "vector-store-zone" => "vector-store-zones",
            long => long,
        };
        let nonsense = toml::Table::from_iter([(name.to_owned(), toml::Value::Array(vec![]))]);
        let read = GatewaySettings::of_file(nonsense).map(drop);
        let is_unknown = |error: &ProcessFailure| error.to_string().contains("unknown field");
        assert!(!read.is_err_and(|error| is_unknown(&error)), "{name}");
    }
}

#[test]
fn an_invalid_entry_of_the_file_is_named() {
    for (text, named) in [
        ("cql-prot = 1", "cql-prot"),
        ("tls-crt-path = \"a\"", "tls-crt-path"),
        ("vector-store-uri = \"a\"", "vector-store-uri"),
        (
            "tls-file-check-interval = \"soon\"",
            "in `tls-file-check-interval`",
        ),
        ("cql-port = \"a\"", "in `cql-port`"),
        ("store = \"a\"", "in `store`"),
    ] {
        let error = GatewaySettings::of_file(toml::from_str(text).unwrap()).unwrap_err();
        assert!(error.to_string().contains(named), "{text}: {error}");
    }
}

#[test]
fn gateways_are_read_from_the_file_unless_flags_name_some() {
    let settings =
        file("cassandra = \"10.0.0.1:9042\"\n[gateways]\n\"10.0.0.1:9042\" = \"10.0.1.1:9043\"");
    let node = "10.0.0.1:9042".parse().unwrap();
    let resolved = settings.clone().resolve().unwrap();
    let gateway = resolved.options.ring.gateway_of(node);
    assert_eq!(gateway, Some("10.0.1.1:9043".parse().unwrap()));
    let flags = GatewaySettings {
        gateway_pairs: Some(vec!["10.0.0.1:9042=10.0.2.1:9043".parse().unwrap()]),
        ..GatewaySettings::default()
    };
    let resolved = flags.or(settings).resolve().unwrap();
    let gateway = resolved.options.ring.gateway_of(node);
    assert_eq!(gateway, Some("10.0.2.1:9043".parse().unwrap()));
    assert_eq!(resolved.options.cassandra, "10.0.0.1:9042");
}

#[test]
fn definitions_are_kept_in_the_cluster_unless_all_is_passed_through() {
    let catalog = |text| file(text).resolve().unwrap().options.catalog;
    let by_default = catalog("cassandra = \"10.0.0.1:9042\"").unwrap();
    assert_eq!(by_default.contact_points, ["10.0.0.1:9042"]);
    assert_eq!(by_default.keyspace, "annulus");
    assert_eq!(by_default.log_ttl, Duration::from_secs(86_400));
    assert_eq!(by_default.credentials, None);
    assert!(catalog("pass-through = true").is_none());
    let password = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(password.path(), "secret \n").unwrap();
    let text = format!(
        "cassandra-user = \"gateway\"\ncassandra-password-file = {:?}\nlog-hours = 2",
        password.path()
    );
    let with_user = catalog(&text).unwrap();
    let expected = ("gateway".to_owned(), "secret ".to_owned().into());
    assert_eq!(with_user.credentials, Some(expected));
    assert_eq!(with_user.log_ttl, Duration::from_secs(7_200));
}

#[test]
fn impossible_settings_are_refused_by_name() {
    for (text, named) in [
        ("cassandra = \"10.0.0.1\"", "10.0.0.1"),
        ("cassandra = \"10.0.0.1:0\"", "HOST:PORT"),
        ("cassandra = \"10.0.0.1:x\"", "HOST:PORT"),
        ("max-frame-mib = 0", "max-frame-mib"),
        ("max-connections = 0", "max-connections"),
        ("log-hours = 0", "log-hours"),
        ("slow-query-threshold = \"10000d\"", "slow-query-threshold"),
        ("cassandra-user = \"a\"", "cassandra-password-file"),
        ("[store]\nuri = \"127.0.0.1:0\"", "with-store is not"),
        (
            "with-store = true\npass-through = true",
            "with-store and pass-through",
        ),
        (
            "with-store = true\nvector-store-primary-uri = [\"http://10.0.0.1:6080\"]",
            "with-store and vector-store-primary-uri",
        ),
        (
            "with-store = true\nvector-store-own-zone = \"a\"",
            "with-store and vector-store-own-zone",
        ),
        (
            "with-store = true\nvector-store-secondary-uri = [\"http://10.0.0.1:6080\"]",
            "with-store and vector-store-secondary-uri",
        ),
        ("cassandra-password-file = \"a\"", "cassandra-user"),
        (
            "cassandra-user = \"a\"\ncassandra-password-file = \"/nowhere/at/all\"",
            "/nowhere/at/all",
        ),
        (
            "[gateways]\n\"10.0.0.1:9042\" = \"0.0.0.0:9043\"",
            "0.0.0.0:9043",
        ),
    ] {
        let error = file(text).resolve().unwrap_err();
        assert!(error.to_string().contains(named), "{error}");
    }
    assert!(
        " 10.0.0.1:9042=10.0.0.1:9043"
            .parse::<GatewayPair>()
            .is_ok()
    );
    assert!("10.0.0.1:9042".parse::<GatewayPair>().is_err());
    assert!("node:9042=10.0.0.1:9043".parse::<GatewayPair>().is_err());
}

#[test]
fn a_threshold_makes_statements_slow_and_zero_none() {
    let is_slow = |text: &str, took_ms: u64| {
        let log = file(text).resolve().unwrap().options.slow_queries;
        log.is_slow(Duration::from_millis(took_ms))
    };
    assert!(is_slow("", 500) && !is_slow("", 499));
    let lower = "slow-query-threshold = \"20ms\"\nslow-queries-per-second = 1";
    assert!(is_slow(lower, 20) && !is_slow(lower, 19));
    assert!(!is_slow("slow-query-threshold = \"0s\"", 1_000_000));
}

#[test]
fn answers_come_from_the_index_alone_if_that_is_asked_for() {
    let answers = |settings: GatewaySettings| settings.resolve().unwrap().options.answer_from_index;
    assert!(!answers(file("")));
    assert!(answers(file("answer-from-index = true")));
    let off = GatewaySettings {
        answer_from_index: Some(false),
        ..GatewaySettings::default()
    };
    assert!(!answers(off.or(file("answer-from-index = true"))));
}

#[test]
fn the_index_service_is_in_this_process_if_that_is_asked_for() {
    let with_store = |text| file(text).resolve().unwrap().with_store;
    assert!(!with_store(""));
    assert!(with_store(
        "with-store = true\n[store]\nuri = \"127.0.0.1:0\""
    ));
    // The service is switched off for a while.
    assert!(!with_store(
        "with-store = false\n[store]\nuri = \"127.0.0.1:0\""
    ));
    let off = GatewaySettings {
        with_store: Some(false),
        ..GatewaySettings::default()
    };
    let others = "vector-store-primary-uri = [\"http://10.0.0.1:6080\"]";
    assert!(!off.or(file(others)).resolve().unwrap().with_store);
}
