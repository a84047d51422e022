"""The architecture as a test: a module imports only from lower layers, SQL stays in its place, imports stay light."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import holomem

PACKAGE = Path(holomem.__file__).parent
LAYERS = [  # lowest first; see docs/architecture.md
    {"errors", "types", "paths"},
    {
        "_stopwords",
        "_commonwords",
        "_claimwords",
        "_sentences",
        "claims",
        "_namekeys",
        "_unspaced",
        "_extraction",
        "_aliases",
        "_timewords",
        "times",
        "text",
        "scoping",
        "entities",
        "_reference",
        "_kernels",
        "kernels",
    },
    {"hrr", "fusion", "selection", "embedding"},
    {"schema", "database", "records", "banks", "links", "models", "store", "visibility", "lexicon", "vectors", "index"},
    {
        "semantics",
        "ingest",
        "asked",
        "mentions",
        "naming",
        "search",
        "structure",
        "roles",
        "contradictions",
        "history",
        "revise",
        "portable",
        "projection",
        "upkeep",
        "arguments",
    },
    {"opened", "memory"},
    {"demo", "tools", "aio", "compat"},
    {"hermes", "mcp", "web"},
    {"cli", "__main__", "__init__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}
MODULES = sorted(PACKAGE.rglob("*.py"))


def part(path):
    """The first name below the package: `embedding` for embedding/onnx.py."""
    return path.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imported(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module == "holomem":
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("holomem."):
            yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            yield from (alias.name.split(".")[1] for alias in node.names if alias.name.startswith("holomem."))


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_a_module_imports_only_from_lower_layers_or_its_own(path):
    own = RANK[part(path)]
    above = [name for name in imported(path) if name in RANK and RANK[name] > own]
    assert not above


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_sql_stands_in_the_store_and_its_parts_only(path):
    statements = re.findall(r'"(?:SELECT|INSERT|UPDATE|DELETE|PRAGMA|CREATE) ', path.read_text(encoding="utf-8"))
    assert not statements or part(path) in {"schema", "database", "records", "banks", "links", "models", "store"}


def test_importing_holomem_loads_no_heavy_library():
    code = "import sys, holomem; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"onnxruntime", "tokenizers", "huggingface_hub", "http.server", "click", "mcp", "asyncio"} & set(loaded)


def test_the_public_names_are_these():
    assert holomem.__all__ == sorted(holomem.__all__, key=lambda name: (name.startswith("_"), name))
    assert all(hasattr(holomem, name) for name in holomem.__all__)


def test_every_public_name_has_a_docstring():
    bare = [name for name in holomem.__all__ if name != "__version__" and not getattr(holomem, name).__doc__]
    assert not bare
    assert not [name for name in dir(holomem.Memory) if name[0] != "_" and not getattr(holomem.Memory, name).__doc__]
