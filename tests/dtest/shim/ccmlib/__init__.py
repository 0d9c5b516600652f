"""Stands in for ccm, which starts clusters of Cassandra. Here a cluster is one process of `annulus serve`."""
