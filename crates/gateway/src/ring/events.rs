//! Changes events about nodes into events about their gateways.

use cql::wire::ServerEvent;

use super::Ring;

/// The event that drivers get in place of `event`; `None` if its node has no gateway.
pub(crate) fn translate_event(event: ServerEvent, ring: &Ring) -> Option<ServerEvent> {
    match event {
        ServerEvent::TopologyChange { change, node } => Some(ServerEvent::TopologyChange {
            change,
            node: ring.gateway_of(node)?,
        }),
        ServerEvent::StatusChange { change, node } => Some(ServerEvent::StatusChange {
            change,
            node: ring.gateway_of(node)?,
        }),
        ServerEvent::SchemaChange(_) => Some(event),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use cql::wire::{SchemaChange, SchemaChangeKind, SchemaTarget, StatusChange, TopologyChange};

    use super::*;

    #[test]
    fn nodes_become_their_gateways_and_other_nodes_are_not_reported() {
        let node: SocketAddr = "10.0.0.1:9042".parse().unwrap();
        let gateway: SocketAddr = "10.0.1.1:9043".parse().unwrap();
        let stranger: SocketAddr = "10.0.0.9:9042".parse().unwrap();
        let ring = Ring::new([(node, gateway)]).unwrap();
        let up = |node| ServerEvent::StatusChange {
            change: StatusChange::Up,
            node,
        };
        let moved = |node| ServerEvent::TopologyChange {
            change: TopologyChange::MovedNode,
            node,
        };
        assert_eq!(translate_event(up(node), &ring), Some(up(gateway)));
        assert_eq!(translate_event(moved(node), &ring), Some(moved(gateway)));
        assert_eq!(translate_event(up(stranger), &ring), None);
        assert_eq!(translate_event(moved(stranger), &ring), None);
        let schema = ServerEvent::SchemaChange(SchemaChange {
            change: SchemaChangeKind::Created,
            keyspace: "k".to_owned(),
            target: SchemaTarget::Keyspace,
        });
        assert_eq!(translate_event(schema.clone(), &ring), Some(schema));
    }
}
