"""The standard tests that LangChain has for stores of all makers, whole."""

import pytest
from langchain_tests.integration_tests import BaseStoreAsyncTests, BaseStoreSyncTests, VectorStoreIntegrationTests

from langchain_annulus import AnnulusByteStore, AnnulusVectorStore


class VectorStoreTests(VectorStoreIntegrationTests):
    options = {}

    @pytest.fixture
    def vectorstore(self, place):
        return AnnulusVectorStore(self.get_embeddings(), **place, **self.options)


class TestVectorStore(VectorStoreTests):
    pass


class TestVectorStoreOfANamespace(VectorStoreTests):
    options = {"namespace": "one"}


class TestVectorStoreWithColumns(VectorStoreTests):
    options = {"metadata_columns": {"id": int}}


class TestVectorStoreByBoth(VectorStoreTests):
    options = {"search_mode": "hybrid"}


class TestVectorStoreOfANamespaceByBoth(VectorStoreTests):
    options = {"search_mode": "hybrid", "namespace": "one"}


class ByteStoreTests:
    options = {}

    @pytest.fixture
    def kv_store(self, place):
        return AnnulusByteStore(**place, **self.options)

    @pytest.fixture
    def three_values(self):
        return b"foo", b"bar", b""


class TestByteStore(ByteStoreTests, BaseStoreSyncTests[bytes]):
    pass


class TestByteStoreByAsyncCalls(ByteStoreTests, BaseStoreAsyncTests[bytes]):
    pass


class TestByteStoreOfANamespace(ByteStoreTests, BaseStoreSyncTests[bytes]):
    options = {"namespace": "one"}


class TestByteStoreOfANamespaceByAsyncCalls(ByteStoreTests, BaseStoreAsyncTests[bytes]):
    options = {"namespace": "one"}
