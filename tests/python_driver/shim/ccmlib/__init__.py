"""Stands in for ccm, by whose names the driver's tests are defined, although the cluster runs already."""
