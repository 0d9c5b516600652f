//! The files of the page. A new file of `web` is one line here, in the order of the names.

/// A file of the page.
pub(crate) struct EmbeddedFile {
    /// Its name below `/console/`.
    pub(crate) name: &'static str,
    pub(crate) bytes: &'static [u8],
}

/// Files of `web` by their names, or names with the paths of files elsewhere, from this folder.
macro_rules! embedded {
    ($($name:literal $(= $path:literal)?;)*) => {
        &[$(EmbeddedFile { name: $name, bytes: embedded!(@bytes $name $($path)?) },)*]
    };
    (@bytes $name:literal) => {
        include_bytes!(concat!("../web/", $name))
    };
    (@bytes $name:literal $path:literal) => {
        include_bytes!($path)
    };
}

/// All files of the page.
pub(crate) const FILES: &[EmbeddedFile] = embedded! {
    "api.js";
    "app.js";
    "css/components.css";
    "css/indexes.css";
    "css/map.css";
    "css/query.css";
    "css/search.css";
    "css/tables.css";
    "css/views.css";
    "css/watch.css";
    "examples/go" = "../../../examples/go/main.go";
    "examples/java" = "../../../examples/java/src/main/java/Quickstart.java";
    "examples/node" = "../../../examples/node/quickstart.mjs";
    "examples/python" = "../../../examples/python/quickstart.py";
    "examples/rust" = "../../../examples/rust/src/main.rs";
    "format.js";
    "icon.svg";
    "index.html";
    "json.js";
    "polling.js";
    "style.css";
    "theme.js";
    "ui.js";
    "ui/controls.js";
    "ui/dialog.js";
    "ui/figures.js";
    "ui/html.js";
    "ui/icons.js";
    "ui/keys.js";
    "ui/login.js";
    "ui/page.js";
    "ui/pick.js";
    "ui/route.js";
    "ui/table.js";
    "ui/text.js";
    "ui/theme-switch.js";
    "vendor/LICENSES.txt";
    "vendor/codemirror.js";
    "vendor/preact-htm.js";
    "vendor/uplot.css";
    "vendor/uplot.js";
    "views/backups.js";
    "views/backups/commands.js";
    "views/backups/form.js";
    "views/backups/location.js";
    "views/backups/times.js";
    "views/connections.js";
    "views/index.js";
    "views/indexes.js";
    "views/indexes/create.js";
    "views/indexes/list.js";
    "views/indexes/one.js";
    "views/indexes/recall.js";
    "views/indexes/repair.js";
    "views/indexes/state.js";
    "views/indexes/tasks.js";
    "views/links.js";
    "views/map.js";
    "views/map/chart.js";
    "views/map/colours.js";
    "views/map/drawing.js";
    "views/map/input.js";
    "views/map/legend.js";
    "views/map/making.js";
    "views/map/raster.js";
    "views/map/rows.js";
    "views/map/selection.js";
    "views/metrics.js";
    "views/metrics/chart.js";
    "views/metrics/charts.js";
    "views/metrics/drawing.js";
    "views/metrics/figures.js";
    "views/metrics/history.js";
    "views/metrics/series.js";
    "views/query.js";
    "views/query/editor.js";
    "views/query/examples.js";
    "views/query/history.js";
    "views/query/language.js";
    "views/query/nearest.js";
    "views/query/results.js";
    "views/query/run.js";
    "views/query/schema.js";
    "views/query/text.js";
    "views/role.js";
    "views/roles-forms.js";
    "views/roles.js";
    "views/search.js";
    "views/search/code.js";
    "views/search/filter-editor.js";
    "views/search/filter.js";
    "views/search/form.js";
    "views/search/panel.js";
    "views/search/request.js";
    "views/search/results.js";
    "views/search/run.js";
    "views/search/same.js";
    "views/search/targets.js";
    "views/settings.js";
    "views/slow.js";
    "views/start-sample.js";
    "views/start-snippets.js";
    "views/start-status.js";
    "views/start.js";
    "views/tables.js";
    "views/tables/definition.js";
    "views/tables/find.js";
    "views/tables/list.js";
    "views/tables/one.js";
    "views/tables/row-dialog.js";
    "views/tables/row-form.js";
    "views/tables/rows.js";
    "views/tables/schema.js";
    "views/tables/sizes.js";
    "views/tables/values.js";
    "views/tasks.js";
    "views/tasks/follow.js";
    "views/tasks/parts.js";
    "views/tasks/stop.js";
    "views/tasks/task.js";
    "views/tasks/words.js";
    "views/trace/picture.js";
    "views/trace/steps.js";
};

/// The content type of a file by the end of its name. Examples of programs are shown as text.
pub(crate) fn content_type(name: &str) -> Option<&'static str> {
    if name.starts_with("examples/") {
        return Some("text/plain; charset=utf-8");
    }
    let (_, end) = name.rsplit_once('.')?;
    Some(match end {
        "css" => "text/css; charset=utf-8",
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "png" => "image/png",
        "svg" => "image/svg+xml",
        "txt" => "text/plain; charset=utf-8",
        "woff2" => "font/woff2",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};

    use super::*;

    /// The most bytes that the page may add to the program.
    const BYTES_MAX: usize = 1_000_000;

    fn collect(folder: &Path, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => collect(&path, found),
                false => found.push(path),
            }
        }
    }

    /// The names of the files in the folder.
    fn in_folder() -> BTreeSet<String> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("web");
        let mut found = Vec::new();
        collect(&folder, &mut found);
        let names = found.iter().map(|path| path.strip_prefix(&folder).unwrap());
        names
            .map(|name| name.to_str().unwrap().to_owned())
            .collect()
    }

    #[test]
    fn the_list_has_the_files_of_the_folder() {
        let listed = FILES.iter().map(|file| file.name.to_owned());
        let of_web = listed.filter(|name| !name.starts_with("examples/"));
        let (listed, found): (BTreeSet<String>, _) = (of_web.collect(), in_folder());
        let missing: Vec<&String> = found.difference(&listed).collect();
        assert!(missing.is_empty(), "add to FILES, sorted: {missing:?}");
        assert!(FILES.is_sorted_by_key(|file| file.name));
        assert_eq!(found.len(), listed.len());
    }

    #[test]
    fn each_file_has_a_type_and_all_have_a_bound() {
        for file in FILES {
            assert!(content_type(file.name).is_some(), "{}", file.name);
        }
        let bytes: usize = FILES.iter().map(|file| file.bytes.len()).sum();
        assert!(bytes <= BYTES_MAX, "{bytes} bytes");
        assert_eq!(content_type("a.exe"), None);
        assert_eq!(content_type("exe"), None);
        assert!(content_type("examples/go").is_some());
    }

    /// The policy of the page forbids what is written into it.
    #[test]
    fn pages_have_no_script_and_no_style_within() {
        let pages = FILES.iter().filter(|file| file.name.ends_with(".html"));
        for page in pages {
            let text = std::str::from_utf8(page.bytes).unwrap();
            for forbidden in ["<script>", "<style", " style=", " onclick=", "javascript:"] {
                assert!(!text.contains(forbidden), "{}: {forbidden}", page.name);
            }
            for address in text.split("=\"").skip(1) {
                let address = address.split('"').next().unwrap();
                assert!(!address.contains("://"), "{}: {address}", page.name);
            }
        }
    }
}
