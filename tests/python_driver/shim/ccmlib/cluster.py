class Cluster:
    """Never made: USE_CASS_EXTERNAL is set."""
