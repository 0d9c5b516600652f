use super::*;
use crate::store_service::host::{ClientTlsPolicy, EnclosingGateway};

fn alone(flags: &[&str]) -> ServiceHost {
    ServiceHost::Alone(flags.iter().map(OsString::from).collect())
}

/// A gateway with this settings file.
fn in_gateway(file: &Path) -> ServiceHost {
    ServiceHost::Gateway(EnclosingGateway {
        memory: crate::memory_limit::MemoryLimit { bytes: None },
        maintenance: http_server::MaintenanceMode::default(),
        file: Some(file.to_owned()),
        shown: Vec::new(),
        address: "127.0.0.1:9043".parse().unwrap(),
        asks: ClientTlsPolicy::Nothing,
    })
}

/// All settings, of which flags and the environment give the first.
fn all(
    host: &ServiceHost,
    dot_env: &BTreeMap<String, String>,
) -> Result<StoreSettings, ProcessFailure> {
    layered(host, given(host)?, dot_env)
}

fn variables(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    of.iter().map(owned).collect()
}

#[test]
fn a_flag_outranks_dot_env_and_that_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.toml");
    let text =
        "uri = 'file:1'\nmtls-uri = 'file:2'\nscylladb-uri = ['file:3', 'file:4']\nthreads = 5";
    std::fs::write(&file, text).unwrap();
    let dot_env = variables(&[
        ("ANNULUS_CONFIG", file.to_str().unwrap()),
        ("VECTOR_STORE_URI", "dot:1"),
        ("VECTOR_STORE_MTLS_URI", "dot:2"),
        ("UNRELATED", "x"),
    ]);
    let flags = alone(&["--uri", "flag:1"]);
    let settings = all(&flags, &dot_env).unwrap();
    assert_eq!(settings.uri.as_deref(), Some("flag:1"));
    assert_eq!(settings.mtls_uri.as_deref(), Some("dot:2"));
    assert_eq!(settings.scylladb_uri.as_deref(), Some("file:3,file:4"));
    assert_eq!(settings.threads, Some(5));
}

#[test]
fn the_environment_outranks_dot_env_and_the_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.toml");
    std::fs::write(&file, "mtls-uri = 'file:2'").unwrap();
    let dot_env = variables(&[("VECTOR_STORE_URI", "dot:1"), ("VECTOR_STORE_THREADS", "5")]);
    let given = StoreSettings {
        config: Some(file),
        uri: Some("environment:1".to_owned()),
        mtls_uri: Some("environment:2".to_owned()),
        ..StoreSettings::default()
    };
    let settings = layered(&alone(&[]), given, &dot_env).unwrap();
    assert_eq!(settings.uri.as_deref(), Some("environment:1"));
    assert_eq!(settings.mtls_uri.as_deref(), Some("environment:2"));
    assert_eq!(settings.threads, Some(5));
}

#[test]
fn settings_are_shown_with_their_sources() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.toml");
    let text = "uri = 'file:1'\nmtls-uri = 'file:2'\nthreads = 5\n\
                embeddings-url = 'http://127.0.0.1:8080/v1/embeddings?key=secret'";
    std::fs::write(&file, text).unwrap();
    let dot_env = variables(&[("VECTOR_STORE_MTLS_URI", "dot:2")]);
    let flags = ["--config", file.to_str().unwrap(), "--uri", "flag:1"];
    let lines = shown_of(&alone(&flags), &dot_env).unwrap();
    let line = |name: &str| {
        let line = lines.iter().find(|line| line.name == name).unwrap();
        (line.value.as_str(), line.source)
    };
    assert_eq!(line("uri"), ("flag:1", "command line or environment"));
    assert_eq!(line("mtls-uri"), ("dot:2", ".env"));
    assert_eq!(line("threads"), ("5", "file"));
    let without_key = "http://127.0.0.1:8080/v1/embeddings";
    assert_eq!(line("embeddings-url"), (without_key, "file"));
    assert_eq!(line("cdc-sleep-interval"), ("10s", "default"));

    std::fs::write(&file, "[store]\nthreads = 7").unwrap();
    let host = in_gateway(&file);
    let lines = shown_of(&host, &variables(&[])).unwrap();
    assert!(lines.iter().all(|line| line.name != "log"), "{lines:?}");
    let lines = host.shown(lines);
    let threads = lines.iter().find(|line| line.name == "store.threads");
    assert_eq!(threads.map(|line| line.value.as_str()), Some("7"));
}

#[test]
fn a_line_of_the_file_means_what_its_flag_means() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.toml");
    let text = r#"
        http-host = ["a", "b"]
        threads = 5
        memory-limit = "4GiB"
        disable-colors = true
        when-short = "error"
        index-vectors = "memory"
        scrub-interval = "7d"
        cql-uri-translation-map = '{"10.0.0.1:9042": "192.0.2.1:9042"}'
        log-format = "json"
    "#;
    std::fs::write(&file, text).unwrap();
    let flags = [
        "--http-host=a,b",
        "--threads=5",
        "--memory-limit=4GiB",
        "--disable-colors",
        "--when-short=error",
        "--index-vectors=memory",
        "--scrub-interval=7d",
        r#"--cql-uri-translation-map={"10.0.0.1:9042": "192.0.2.1:9042"}"#,
        "--log-format=json",
    ];
    let host = alone(&flags);
    let flags = flags.map(OsString::from);
    let typed = parse(without_environment(known(&host)), &flags, "flags").unwrap();
    let written = of_file(&host, &file).unwrap();
    assert_eq!(format!("{written:?}"), format!("{typed:?}"));
}

#[test]
fn a_mistake_is_told_with_its_place() {
    let dot_env = variables(&[("VECTOR_STORE_CDC_SLEEP_INTERVAL", "soon")]);
    let error = all(&alone(&[]), &dot_env).unwrap_err();
    let error = error.to_string();
    assert!(error.starts_with(".env: "), "{error}");
    assert!(error.contains("--cdc-sleep-interval"), "{error}");

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("store.toml");
    let flags = ["--config", file.to_str().unwrap()];
    for (text, named) in [
        ("urri = 'x:1'", "`urri`"),
        ("threads = 'many'", "`threads`"),
        ("[threads]", "`threads`"),
        ("uri", "store.toml"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = all(&alone(&flags), &variables(&[])).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("store.toml: "), "{error}");
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn dot_env_may_be_missing_but_not_broken() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join(".env");
    assert_eq!(dot_env(&path).unwrap(), variables(&[]));
    std::fs::write(&path, "# comment\nA=1\nexport B=\"two words\"\n").unwrap();
    assert_eq!(
        dot_env(&path).unwrap(),
        variables(&[("A", "1"), ("B", "two words")])
    );
    std::fs::write(&path, "A=1\nPASSWORD=very secret").unwrap();
    let error = dot_env(&path).unwrap_err().to_string();
    assert!(error.contains(".env: a line can't be parsed"), "{error}");
    assert!(!error.contains("secret"), "{error}");
}

#[test]
fn every_variable_of_the_original_is_known() {
    const ORIGINAL: &str = "URI TLS_CERT_PATH TLS_KEY_PATH TLS_FILE_CHECK_INTERVAL MTLS_URI \
        MTLS_CA_CERT_PATH SCYLLADB_URI SCYLLADB_USERNAME SCYLLADB_PASSWORD_FILE \
        SCYLLADB_CERTIFICATE_FILE DISABLE_COLORS OPENSEARCH_URI THREADS MEMORY_LIMIT \
        MEMORY_USAGE_CHECK_INTERVAL CQL_CONNECTION_TIMEOUT CQL_KEEPALIVE_INTERVAL \
        CQL_KEEPALIVE_TIMEOUT CQL_TCP_KEEPALIVE_INTERVAL CQL_URI_TRANSLATION_MAP \
        CQL_PREFERRED_DATACENTER CQL_PREFERRED_RACK CDC_SAFETY_INTERVAL CDC_SLEEP_INTERVAL \
        CDC_FINE_SAFETY_INTERVAL CDC_FINE_SLEEP_INTERVAL MONITOR_INDEXES_INTERVAL \
        INDEX_STATUS_UPDATE_INTERVAL USEARCH_SIMULATOR USE_DISKANN DISKANN_ALPHA \
        FULLTEXT_INDEXES ALTER_INDEX_SIMULATOR";
    let known = StoreSettings::augment_args(Command::new("settings"));
    for name in ORIGINAL.split_whitespace() {
        let name = format!("VECTOR_STORE_{name}");
        let set = known
            .get_arguments()
            .any(|argument| argument.get_env().is_some_and(|env| env == name.as_str()));
        assert!(set != WITHOUT_EFFECT.contains(&name.as_str()), "{name}");
    }
}

#[test]
fn in_a_gateway_the_table_of_its_file_comes_last() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gateway.toml");
    let text =
        "listen = 'x'\nthreads = 9\n[store]\nuri = 'file:1'\nmtls-uri = 'file:2'\nthreads = 5";
    std::fs::write(&file, text).unwrap();
    let dot_env = variables(&[
        ("VECTOR_STORE_URI", "dot:1"),
        // These are settings of the gateway, which have no effect here.
        ("ANNULUS_CONFIG", "/nowhere/at/all"),
        ("ANNULUS_LOG", "debug"),
    ]);
    let settings = all(&in_gateway(&file), &dot_env).unwrap();
    assert_eq!(settings.uri.as_deref(), Some("dot:1"));
    assert_eq!(settings.mtls_uri.as_deref(), Some("file:2"));
    assert_eq!(settings.threads, Some(5));
    assert_eq!((settings.config, settings.log), (None, None));

    std::fs::write(&file, "listen = 'x'").unwrap();
    let settings = all(&in_gateway(&file), &variables(&[])).unwrap();
    assert_eq!(settings.uri, None);
}

#[test]
fn a_mistake_in_the_table_of_a_gateway_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("gateway.toml");
    for (text, named) in [
        (
            "[store]\nurri = 'x:1'",
            "[store]: there is no setting `urri`",
        ),
        ("[store]\nthreads = 'many'", "[store]: invalid type"),
        ("[store]\nlog = 'debug'", "`log` concerns the whole process"),
        ("[store.threads]", "`threads`"),
        ("store = 1", "`store` is no table"),
    ] {
        std::fs::write(&file, text).unwrap();
        let error = all(&in_gateway(&file), &variables(&[])).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("gateway.toml"), "{error}");
        assert!(error.contains(named), "{error}");
    }
}

#[test]
fn settings_without_effect_are_reported() {
    let names = [
        "VECTOR_STORE_USE_DISKANN",
        "VECTOR_STORE_DISABLE_COLORS",
        "ANNULUS_LOG",
        "VECTOR_STORE_THREADS",
    ];
    let in_environment = |name: &str| names.contains(&name);
    let of = |host: &ServiceHost, dot_env: &[(&str, &str)]| {
        without_effect_in(host, &in_environment, &variables(dot_env))
    };
    assert_eq!(of(&alone(&[]), &[]), names[..1]);
    let in_gateway = in_gateway(Path::new("gateway.toml"));
    assert_eq!(of(&in_gateway, &[]), names[..2]);
    // The gateway takes its own settings from the environment, and doesn't read `.env`.
    assert_eq!(of(&in_gateway, &[("ANNULUS_LOG", "debug")]), names[..3]);
}

#[test]
fn settings_of_the_process_have_the_listed_names() {
    let known = StoreSettings::augment_args(Command::new("settings"));
    for (long, name, _) in OF_THE_PROCESS {
        let is = |argument: &&Arg| argument.get_long() == Some(long);
        let argument = known.get_arguments().find(is).expect(long);
        assert_eq!(argument.get_env().unwrap(), name);
    }
}
