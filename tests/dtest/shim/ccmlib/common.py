"""Names of ccm that the tests use beside a cluster."""

import os
import re
import shutil
from distutils.version import LooseVersion

VERSION = os.environ["CASSANDRA_VERSION"]


class LogPatternToVersion:
    """A pattern by version of the server: that of the newest version."""

    def __init__(self, patterns, default_pattern=None):
        self._pattern = patterns[max(patterns)] if patterns else default_pattern

    def __call__(self, _version):
        return self._pattern


def is_win():
    return False


def get_version_from_build(_directory=None, **_):
    return LooseVersion(VERSION)


def get_jdk_version_int(*_):
    return 17


def validate_install_dir(_directory):
    pass


def platform_binary(name):
    return name


def make_cassandra_env(_directory, _node_path, **_):
    """The environment for programs such as cqlsh."""
    return dict(os.environ)


def replaces_in_file(path, replacements):
    text = open(path).read()
    for pattern, replacement in replacements:
        text = re.sub(pattern, replacement, text)
    open(path, "w").write(text)


def rmdirs(path):
    shutil.rmtree(path, ignore_errors=True)
