//! The protocol: the list of tools, and calls with their time limit.

use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, Implementation,
    JsonObject, ListToolsResult, PaginatedRequestParams, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use scylla::client::session::Session;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::OnceCell;

use super::answer::AnswerBounds;
use super::catalog::{self, CatalogTable};
use super::failure::CallFailure;
use super::search::{self, SearchToolArguments};
use super::{reading, statement, tool_list};
use crate::CqlFlags;

/// Arguments of `cql`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CqlToolArguments {
    query: String,
    #[serde(default)]
    parameters: Vec<Value>,
}

/// The tools on one CQL server.
pub struct DatabaseTools {
    connection: CqlFlags,
    session: OnceCell<Session>,
    writes_are_allowed: bool,
    bounds: AnswerBounds,
    longest: Duration,
}

impl DatabaseTools {
    /// The tools on the server of these flags. A call takes `longest` at most, once there is a
    /// session.
    pub fn new(
        connection: CqlFlags,
        writes_are_allowed: bool,
        bounds: AnswerBounds,
        longest: Duration,
    ) -> DatabaseTools {
        DatabaseTools {
            connection,
            session: OnceCell::new(),
            writes_are_allowed,
            bounds,
            longest,
        }
    }

    /// The session, which the first call opens. After a failure the next call tries again.
    async fn session(&self) -> Result<&Session, CallFailure> {
        let session = self.session.get_or_try_init(|| self.connection.connect());
        Ok(session.await?)
    }

    async fn answer(&self, tool: &str, arguments: JsonObject) -> Result<String, CallFailure> {
        let session = self.session().await?;
        let work = self.carry_out(session, tool, arguments);
        match tokio::time::timeout(self.longest, work).await {
            Ok(answer) => answer,
            Err(_) => Err(CallFailure::new(
                format!(
                    "the call took longer than {} s and was given up",
                    self.longest.as_secs()
                ),
                "restrict the partition key or columns of an index, or take a smaller LIMIT (`annulus mcp --timeout` \
                 raises the bound)",
            )),
        }
    }

    async fn carry_out(
        &self,
        session: &Session,
        tool: &str,
        arguments: JsonObject,
    ) -> Result<String, CallFailure> {
        let bounds = self.bounds;
        match tool {
            tool_list::LIST_TABLES => catalog::tables(session, read(arguments)?, bounds).await,
            tool_list::LIST_INDEXES => {
                catalog::all_indexes(session, read(arguments)?, bounds).await
            }
            tool_list::DESCRIBE => catalog::describe(session, read(arguments)?, bounds).await,
            tool_list::SEARCH => {
                let arguments: SearchToolArguments = read(arguments)?;
                let (keyspace, table) = (&arguments.keyspace, &arguments.table);
                let table = CatalogTable::read(session, keyspace, table).await?;
                let search = search::statement(&table, &arguments)?;
                reading::read(session, &search.query, &search.parameters, bounds).await
            }
            _ => {
                let CqlToolArguments { query, parameters } = read(arguments)?;
                statement::check(&query, self.writes_are_allowed)?;
                reading::read(session, &query, &parameters, bounds).await
            }
        }
    }
}

/// Reads the arguments of a call.
fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, CallFailure> {
    serde_json::from_value(Value::Object(arguments)).map_err(|error| {
        CallFailure::new(
            format!("the arguments can't be read: {error}"),
            "the tool's input schema has their names and types",
        )
    })
}

impl ServerHandler for DatabaseTools {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let program = Implementation::new("annulus", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(program.with_title("Annulus"))
            .with_instructions(tool_list::INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = tool_list::tools(self.writes_are_allowed);
        Ok(ListToolsResult::with_all_items(tools))
    }

    /// Calls a tool. A failure is an answer that the model reads; only a tool that is not there is
    /// an error of the protocol.
    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let tools = tool_list::tools(self.writes_are_allowed);
        if !tools.iter().any(|tool| tool.name == request.name) {
            let names: Vec<&str> = tools.iter().map(|tool| &*tool.name).collect();
            let message = format!("no tool {}: there are {}", request.name, names.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        }
        let arguments = request.arguments.unwrap_or_default();
        let answer = tokio::select! {
            answer = self.answer(&request.name, arguments) => answer,
            () = context.ct.cancelled() => {
                Err(CallFailure::new("the client ended the call", "call again"))
            }
        };
        let result = match answer {
            Ok(text) => CallToolResult::success(vec![ContentBlock::text(text)]),
            Err(failure) => CallToolResult::error(vec![ContentBlock::text(failure.text())]),
        };
        Ok(result.into())
    }
}
