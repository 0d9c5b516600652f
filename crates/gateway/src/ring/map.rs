//! The map from nodes to the gateways in front of them.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};

/// The gateways of a cluster, by the addresses of the nodes that they are in front of.
///
/// A node without a gateway is not reported to drivers, as they would connect to it past the
/// gateways.
#[derive(Clone, Debug, Default)]
pub struct Ring {
    /// The gateway of each node.
    by_node: HashMap<SocketAddr, SocketAddr>,
    /// The gateway of the node with this address. `None` if several nodes share the address, with
    /// different ports.
    by_ip: HashMap<IpAddr, Option<SocketAddr>>,
}

/// The error for a list of gateways that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RingError {
    /// A node is named twice.
    #[error("node {0} is given two gateways; name one for each node")]
    NodeTwice(SocketAddr),
    /// A gateway is named twice.
    #[error("gateway {0} is given two nodes; each gateway stands before one node")]
    GatewayTwice(SocketAddr),
    /// An address that drivers cannot connect to.
    #[error(
        "{0} is no address that a driver can connect to; write the address of one machine and a port"
    )]
    Unreachable(SocketAddr),
}

impl Ring {
    /// Makes a ring of pairs: a node's address for clients (`rpc_address` and
    /// `native_transport_port`), and the address at which drivers reach its gateway.
    ///
    /// # Errors
    /// If a node or a gateway is named twice, or if an address or port is unspecified.
    pub fn new(
        gateways: impl IntoIterator<Item = (SocketAddr, SocketAddr)>,
    ) -> Result<Ring, RingError> {
        let mut ring = Ring::default();
        for (node, gateway) in gateways {
            for address in [node, gateway] {
                if address.ip().is_unspecified() || address.port() == 0 {
                    return Err(RingError::Unreachable(address));
                }
            }
            if ring.by_node.values().any(|known| *known == gateway) {
                return Err(RingError::GatewayTwice(gateway));
            }
            if ring.by_node.insert(node, gateway).is_some() {
                return Err(RingError::NodeTwice(node));
            }
            ring.by_ip
                .entry(node.ip())
                .and_modify(|known| *known = None)
                .or_insert(Some(gateway));
        }
        Ok(ring)
    }

    /// The gateway before the node with this address and port.
    pub fn gateway_of(&self, node: SocketAddr) -> Option<SocketAddr> {
        self.by_node.get(&node).copied()
    }

    /// The gateway before the only node with this address, whatever its port.
    pub fn gateway_at(&self, node: IpAddr) -> Option<SocketAddr> {
        self.by_ip.get(&node).copied().flatten()
    }

    /// All gateways, in no order.
    pub fn gateways(&self) -> impl Iterator<Item = SocketAddr> {
        self.by_node.values().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn ring(pairs: &[(&str, &str)]) -> Result<Ring, RingError> {
        Ring::new(
            pairs
                .iter()
                .map(|(node, gateway)| (address(node), address(gateway))),
        )
    }

    #[test]
    fn a_node_is_known_with_and_without_its_port() {
        let ring = ring(&[
            ("10.0.0.1:9042", "10.0.1.1:9043"),
            ("10.0.0.2:9042", "10.0.1.2:9043"),
            ("10.0.0.2:9142", "10.0.1.2:9143"),
        ])
        .unwrap();
        let first = Some(address("10.0.1.1:9043"));
        assert_eq!(ring.gateway_of(address("10.0.0.1:9042")), first);
        assert_eq!(ring.gateway_of(address("10.0.0.1:9999")), None);
        assert_eq!(ring.gateway_at(address("10.0.0.1:1").ip()), first);
        assert_eq!(
            ring.gateway_at(address("10.0.0.2:1").ip()),
            None,
            "there are two"
        );
        assert_eq!(ring.gateway_at(address("10.0.0.3:1").ip()), None);
    }

    #[test]
    fn mistakes_are_named() {
        let node_twice = ring(&[
            ("10.0.0.1:9042", "10.0.1.1:1"),
            ("10.0.0.1:9042", "10.0.1.2:1"),
        ]);
        assert_eq!(
            node_twice.unwrap_err(),
            RingError::NodeTwice(address("10.0.0.1:9042"))
        );
        let gateway_twice = ring(&[
            ("10.0.0.1:9042", "10.0.1.1:1"),
            ("10.0.0.2:9042", "10.0.1.1:1"),
        ]);
        assert_eq!(
            gateway_twice.unwrap_err(),
            RingError::GatewayTwice(address("10.0.1.1:1"))
        );
        let everywhere = ring(&[("10.0.0.1:9042", "0.0.0.0:9043")]);
        assert!(matches!(everywhere, Err(RingError::Unreachable(_))));
    }
}
