//! One side of a comparison: a target with a name, and its indexes or tables to search.

use std::str::FromStr;

use crate::commands::arguments::SearchEndpoint;
use crate::servers::TableNames;
use crate::servers::wire::SearchEncoding;

/// A target with a name.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelledTarget {
    /// The name in tables and charts.
    pub name: String,
    /// The server.
    pub target: SearchEndpoint,
    path: Option<TargetPath>,
}

/// The keyspace and the indexes or tables, if they differ from the other arguments.
#[derive(Clone, Debug, PartialEq)]
struct TargetPath {
    keyspace: String,
    /// The indexes by HTTP, or the tables by CQL. All have the same vectors and are searched more
    /// or less widely.
    items: Vec<String>,
}

impl LabelledTarget {
    /// The names for each search of this side, one for each index or table.
    pub fn names(&self, of_arguments: &TableNames) -> Vec<TableNames> {
        let Some(path) = &self.path else {
            return vec![of_arguments.clone()];
        };
        let names = |item: &String| {
            let mut names = of_arguments.clone();
            names.keyspace.clone_from(&path.keyspace);
            match self.target {
                SearchEndpoint::Http(..) => names.index.clone_from(item),
                SearchEndpoint::Cql(_) => names.table.clone_from(item),
            }
            names
        };
        path.items.iter().map(names).collect()
    }
}

impl FromStr for LabelledTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<LabelledTarget, String> {
        let expected = || {
            format!(
                "{text:?} is not NAME=http[s]://HOST:PORT, NAME=binary+http[s]://HOST:PORT or NAME=cql://HOST:PORT, \
                 with or without /KEYSPACE/INDEX,INDEX..."
            )
        };
        let (name, url) = text.split_once('=').ok_or_else(expected)?;
        let (scheme, rest) = url.split_once("://").ok_or_else(expected)?;
        let mut parts = rest.trim_end_matches('/').splitn(3, '/');
        let authority = parts.next().unwrap_or_default();
        let path = match (parts.next(), parts.next()) {
            (None, _) => None,
            (Some(keyspace), Some(items)) => Some(TargetPath {
                keyspace: keyspace.to_owned(),
                items: items.split(',').map(str::to_owned).collect(),
            }),
            (Some(_), None) => return Err(expected()),
        };
        if let Some(path) = &path
            && path.items.iter().any(String::is_empty)
        {
            return Err(expected());
        }
        let target = match scheme {
            "cql" if authority.contains(':') => SearchEndpoint::Cql(authority.to_owned()),
            _ => {
                let (wire, scheme) = match scheme.strip_prefix("binary+") {
                    Some(scheme) => (SearchEncoding::Binary, scheme),
                    None => (SearchEncoding::Json, scheme),
                };
                let url = format!("{scheme}://{authority}").parse();
                SearchEndpoint::Http(url.map_err(|_| expected())?, wire)
            }
        };
        Ok(LabelledTarget {
            name: name.to_owned(),
            target,
            path,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_arguments() -> TableNames {
        let [keyspace, table, index, key_column, vector_column] = [(); 5].map(|()| "x".to_owned());
        TableNames {
            keyspace,
            table,
            index,
            key_column,
            vector_column,
        }
    }

    #[test]
    fn targets_have_a_name_and_perhaps_a_path() {
        let plain: LabelledTarget = "us=http://127.0.0.1:6080".parse().unwrap();
        assert_eq!((plain.name.as_str(), &plain.path), ("us", &None));
        let other: LabelledTarget = "them=cql://h:9042/ks/t".parse().unwrap();
        assert_eq!(other.target, SearchEndpoint::Cql("h:9042".to_owned()));
        let names = other.names(&of_arguments());
        let found: Vec<_> = names.iter().map(|n| (&*n.keyspace, &*n.table)).collect();
        assert_eq!(found, [("ks", "t")]);
        let binary: LabelledTarget = "us=binary+http://h:1/ks/a,b".parse().unwrap();
        assert_eq!(binary.target.to_string(), "http://h:1 binary");
        let secure: LabelledTarget = "us=binary+https://h:1".parse().unwrap();
        assert_eq!(secure.target.to_string(), "https://h:1 binary");
        let names = binary.names(&of_arguments());
        let found: Vec<_> = names.iter().map(|n| &*n.index).collect();
        assert_eq!(found, ["a", "b"]);
        for text in [
            "http://h:1",
            "a=h:1",
            "a=ftp://h:1",
            "a=http://h",
            "a=cql://h",
            "a=http://h:1/ks",
            "a=http://h:1/ks/a,",
        ] {
            assert!(text.parse::<LabelledTarget>().is_err(), "{text}");
        }
    }
}
