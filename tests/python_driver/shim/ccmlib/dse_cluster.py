class DseCluster:
    """Never made: USE_CASS_EXTERNAL is set."""
