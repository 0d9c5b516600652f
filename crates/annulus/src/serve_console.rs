//! The console of `annulus serve`: the facts that its page shows, and the routes that it needs in
//! addition to those of the servers.

use std::net::SocketAddr;

use http_server::{ServedFeatures, SessionFacts};
use node::Node;
use store::ApiListeners;
use tasks::TaskRegistry;
use web_console::{EmbedService, SettingLines};

#[cfg(feature = "sample")]
use crate::sample_loads::SampleLoads;
use crate::setting_lines;
use crate::settings::ResolvedSettings;

/// The work that requests of the console may have begun.
pub struct ServeConsole {
    #[cfg(feature = "sample")]
    samples: SampleLoads,
}

impl ServeConsole {
    /// Adds the routes to listeners that are not served yet. `cql` is the address for drivers.
    pub fn add(
        listeners: &mut ApiListeners,
        settings: &ResolvedSettings,
        (node, cql): (&Node, SocketAddr),
        (embed, tasks): (&EmbedService, &TaskRegistry),
    ) -> ServeConsole {
        let shown = SettingLines::new(setting_lines::of_process(&settings.shown));
        for routes in [embed.routes(), shown.routes()] {
            listeners.add_routes_of_process(routes);
        }
        listeners.set_session_facts(SessionFacts {
            program: "serve",
            version: env!("CARGO_PKG_VERSION").to_owned(),
            cql: Some(cql),
            features: ServedFeatures {
                cql: true,
                tables: true,
                search: true,
                indexes: true,
                embeddings: embed.has_server(),
                sample: cfg!(feature = "sample"),
                backups: true,
                tasks: true,
                metrics: true,
                settings: true,
            },
        });
        #[cfg(feature = "sample")]
        {
            let samples = SampleLoads::new(node.local(), tasks.clone());
            listeners.add_routes_of_process(samples.routes());
            ServeConsole { samples }
        }
        #[cfg(not(feature = "sample"))]
        {
            let _ = (node, tasks);
            ServeConsole {}
        }
    }

    /// Ends what was begun.
    #[cfg_attr(
        not(feature = "sample"),
        expect(
            clippy::unused_async,
            reason = "as with samples, whose load it waits for"
        )
    )]
    pub async fn stop(self) {
        #[cfg(feature = "sample")]
        self.samples.stop().await;
    }
}
