"""Stands in for a package that the tests use on macOS alone."""

AF_INET = 2
