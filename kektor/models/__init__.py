"""Models behind one protocol each: what turns text into vectors, and what counts tokens.

`resolve("minilm")` gives an `Embedder`; the adapters beside it (ONNX files, the model hub, OpenAI-compatible
servers, sentence-transformers, your own function) give the same protocol. Nothing heavy is imported until a
model is used.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from kektor.models.base import Embedder, Fingerprint, Kind, Progress, Vectors
from kektor.models.registry import EmbedderSpec, resolve
from kektor.models.tokenizer import BertTokenizer, Tokenizer, default_tokenizer

if TYPE_CHECKING:
    from kektor.models.function import FunctionEmbedder
    from kektor.models.hub import HubEmbedder
    from kektor.models.minilm import MiniLMEmbedder, MiniLMInt8Embedder
    from kektor.models.onnx_file import OnnxFileEmbedder
    from kektor.models.openai_http import OpenAIEmbedder
    from kektor.models.sentence_transformers import SentenceTransformersEmbedder

__all__ = [
    "BertTokenizer",
    "Embedder",
    "EmbedderSpec",
    "Fingerprint",
    "FunctionEmbedder",
    "HubEmbedder",
    "Kind",
    "MiniLMEmbedder",
    "MiniLMInt8Embedder",
    "OnnxFileEmbedder",
    "OpenAIEmbedder",
    "Progress",
    "SentenceTransformersEmbedder",
    "Tokenizer",
    "Vectors",
    "default_tokenizer",
    "resolve",
]

_ADAPTERS = {
    "FunctionEmbedder": "function",
    "HubEmbedder": "hub",
    "MiniLMEmbedder": "minilm",
    "MiniLMInt8Embedder": "minilm",
    "OnnxFileEmbedder": "onnx_file",
    "OpenAIEmbedder": "openai_http",
    "SentenceTransformersEmbedder": "sentence_transformers",
}


def __getattr__(name: str) -> Any:
    if name in _ADAPTERS:
        return getattr(import_module(f"{__name__}.{_ADAPTERS[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
