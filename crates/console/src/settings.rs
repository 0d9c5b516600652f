//! `GET /api/v1/settings`: the settings of the process, by their names, with the values that count
//! and the places that these come from. The path of a file with a secret is shown, not the secret.

use std::sync::Arc;

use arc_swap::ArcSwap;
use axum::Json;
use axum::extract::State;
use axum::routing::MethodFilter;
use http_server::{AddedRoutes, RequiredRight, RouteRow};
use serde::Serialize;
use serde_json::{Value, json};

/// A setting of the process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SettingLine {
    /// Its name.
    pub name: String,
    /// The value that counts, as text.
    pub value: String,
    /// The place that the value comes from, such as `default` or `file`.
    pub source: &'static str,
}

/// The settings of the process, which may change while it runs. Clones are the same list.
#[derive(Clone, Debug, Default)]
pub struct SettingLines(Arc<ArcSwap<Vec<SettingLine>>>);

impl SettingLines {
    /// A list with these settings.
    pub fn new(lines: Vec<SettingLine>) -> SettingLines {
        SettingLines(Arc::new(ArcSwap::from_pointee(lines)))
    }

    /// Takes other settings, which are in effect now.
    pub fn replace(&self, lines: Vec<SettingLine>) {
        self.0.store(Arc::new(lines));
    }

    /// The row of the table of routes, with its description.
    pub fn routes(&self) -> AddedRoutes {
        let row: RouteRow<SettingLines> =
            RouteRow::new(MethodFilter::GET, "/api/v1/settings", show);
        let row = row.needs(RequiredRight::SeeSettings).private();
        AddedRoutes {
            rows: vec![row.with_state(self.clone())],
            description: include_str!("settings.json"),
        }
    }
}

/// Returns the settings.
async fn show(State(lines): State<SettingLines>) -> Json<Value> {
    let lines = lines.0.load_full();
    Json(json!({"settings": lines.as_slice()}))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn shown(lines: &SettingLines) -> Value {
        let Json(shown) = show(State(lines.clone())).await;
        shown
    }

    #[tokio::test]
    async fn settings_are_shown_as_they_are_now() {
        let line = |value: &str| SettingLine {
            name: "http-port".to_owned(),
            value: value.to_owned(),
            source: "file",
        };
        let lines = SettingLines::new(vec![line("6080")]);
        let of =
            |value| json!({"settings": [{"name": "http-port", "value": value, "source": "file"}]});
        assert_eq!(shown(&lines).await, of("6080"));
        lines.clone().replace(vec![line("6081")]);
        assert_eq!(shown(&lines).await, of("6081"));
    }

    #[test]
    fn the_route_is_described() {
        let routes = SettingLines::default().routes();
        let document: Value = serde_json::from_str(routes.description).unwrap();
        for row in routes.rows {
            assert!(document["paths"][row.path()]["get"].is_object());
        }
    }
}
