use super::*;

fn boxed(cql_type: CqlType) -> Box<CqlType> {
    Box::new(cql_type)
}

fn map(frozen: bool) -> CqlType {
    CqlType::Map {
        key: boxed(CqlType::Text),
        value: boxed(CqlType::Int),
        frozen,
    }
}

fn set(element: CqlType) -> CqlType {
    CqlType::Set {
        element: boxed(element),
        frozen: false,
    }
}

fn checked(word: Option<&str>, cql_type: &CqlType) -> Result<IndexedPart, String> {
    let column = "c".to_owned();
    let target = match word {
        None => IndexTarget::Column(column),
        Some(word) => IndexTarget::Collection {
            part: word.to_owned(),
            column,
        },
    };
    let column = TargetColumn {
        type_text: cql_type.to_string(),
        cql_type: Some(cql_type.clone()),
        irregular: None,
        is_partition_key: false,
    };
    let named = NamedTarget::of(&[target]).unwrap();
    named.check(&column, false).map_err(|error| error.message)
}

#[test]
fn a_target_is_the_part_that_its_word_names() {
    assert_eq!(checked(None, &CqlType::Int), Ok(IndexedPart::Value));
    assert_eq!(checked(None, &map(false)), Ok(IndexedPart::Values));
    assert_eq!(
        checked(Some("values"), &map(false)),
        Ok(IndexedPart::Values)
    );
    assert_eq!(checked(Some("keys"), &map(false)), Ok(IndexedPart::Keys));
    assert_eq!(
        checked(Some("entries"), &map(false)),
        Ok(IndexedPart::Entries)
    );
    assert_eq!(checked(Some("full"), &map(true)), Ok(IndexedPart::Full));
    let written = |part: IndexedPart| part.target("C d");
    assert_eq!(written(IndexedPart::Value), "\"C d\"");
    assert_eq!(written(IndexedPart::Entries), "entries(\"C d\")");
}

#[test]
fn a_target_that_the_column_does_not_have_is_explained() {
    let tuple = CqlType::Tuple(vec![CqlType::Duration]);
    let cases = [
        (
            None,
            CqlType::Duration,
            "Secondary indexes are not supported on duration columns",
        ),
        (
            None,
            tuple,
            "Secondary indexes are not supported on tuples containing durations",
        ),
        (
            None,
            CqlType::Counter,
            "Secondary indexes on counter tables aren't supported",
        ),
        (
            None,
            map(true),
            "Cannot create values() index on frozen column c. Frozen collections are immutable \
             and must be fully indexed by using the 'full(c)' modifier",
        ),
        (
            Some("full"),
            map(false),
            "full() indexes can only be created on frozen collections",
        ),
        (
            Some("keys"),
            CqlType::Int,
            "Cannot create keys() index on c. Non-collection columns only support simple indexes",
        ),
        (
            Some("entries"),
            set(CqlType::Int),
            "Cannot create index on entries of column c with non-map type",
        ),
    ];
    for (word, cql_type, text) in cases {
        assert_eq!(checked(word, &cql_type), Err(text.to_owned()));
    }
    let two = ["a", "b"].map(|name| IndexTarget::Column(name.to_owned()));
    let several = NamedTarget::of(&two).unwrap_err().message;
    assert_eq!(
        several,
        "A storage-attached index cannot be created over multiple columns: a,b"
    );
}

#[test]
fn options_and_types_that_do_not_fit_are_explained() {
    let of = |options: &[(&str, &str)], cql_type: &CqlType, is_key| {
        let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        let options = options.iter().map(owned).collect();
        check_options(&options, &[cql_type], is_key).map_err(|error| error.message)
    };
    let text = CqlType::Text;
    let case = [("case_sensitive", "false")];
    assert_eq!(of(&case, &text, false), Ok(()));
    assert_eq!(of(&[("ascii", "false")], &CqlType::Int, false), Ok(()));
    let cases: [(&[(&str, &str)], _, _, _); 8] = [
        (
            &[("index_analyzer", "{}"), ("x", "")],
            &text,
            false,
            "Properties specified [index_analyzer, x] are not understood by StorageAttachedIndex",
        ),
        (
            &case,
            &text,
            true,
            "Analysis options are not supported on primary key columns, but found \
             {'case_sensitive': 'false'}",
        ),
        (
            &case,
            &CqlType::Int,
            false,
            "CQL type int cannot be analyzed.",
        ),
        (
            &[("case_sensitive", "x")],
            &text,
            false,
            "Illegal value for boolean option 'case_sensitive': x",
        ),
        (
            &[("similarity_function", "cosine")],
            &CqlType::Int,
            false,
            "CQL type int cannot have vector options",
        ),
        (&[], &CqlType::Counter, false, "Unsupported type: counter"),
        (
            &[("target", "x")],
            &text,
            false,
            "Cannot specify target as a CUSTOM option",
        ),
        (
            &[("ascii", "")],
            &text,
            false,
            "Empty value for boolean option 'ascii'",
        ),
    ];
    for (options, cql_type, is_key, text) in cases {
        assert_eq!(of(options, cql_type, is_key), Err(text.to_owned()));
    }
}

#[test]
fn columns_of_sai_indexes_are_known_by_their_targets() {
    let column = |class: &'static str, target: &'static str| {
        sai_column(|name| match name {
            "class_name" => Some(class),
            "target" => Some(target),
            _ => None,
        })
    };
    let of_sai = |target| column(SAI_CLASS, target);
    assert_eq!(of_sai("colour").as_deref(), Some("colour"));
    assert_eq!(of_sai("keys(m)").as_deref(), Some("m"));
    assert_eq!(of_sai("values(\"M\")").as_deref(), Some("M"));
    assert_eq!(of_sai("\"a\"\"b\"").as_deref(), Some("a\"b"));
    assert_eq!(column("StorageAttachedIndex", "c").as_deref(), Some("c"));
    assert_eq!(column("sai", "c").as_deref(), Some("c"));
    let sasi = "org.apache.cassandra.index.sasi.SASIIndex";
    assert_eq!(column(sasi, "c"), None);
    assert_eq!(sai_column(|_| None), None);
}
