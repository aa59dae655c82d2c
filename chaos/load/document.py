"""Files with a single document of a known kind."""

from __future__ import annotations

from pathlib import Path

from chaos.load.error_collector import did_you_mean
from chaos.load.files import read_text
from chaos.load.tree import MappingNode, Node, ScalarNode, child_of
from chaos.load.yaml_nodes import compose
from chaos.model.errors import BadInput, Problem, bad_input

API_VERSION = "nodefall.dev/v1alpha1"
KINDS = ("Experiment", "Inventory")


def read_document(path: Path) -> MappingNode:
    """The document of a file. Raises BadInput if it is unreadable, invalid, empty, no mapping or not the only one."""
    name = str(path)
    documents = compose(name, read_text(path))
    if not documents:
        raise bad_input(name, "the file is empty", f"begin with apiVersion: {API_VERSION}")
    if len(documents) > 1:
        mark = documents[1].mark
        problem = Problem(name, mark.line, mark.column, "a second document begins here", "write one document per file")
        raise BadInput([problem])
    root = documents[0]
    if not isinstance(root, MappingNode):
        problem = Problem(name, root.mark.line, root.mark.column, "expected a mapping (key: value) at the top")
        raise BadInput([problem])
    return root


def kind_of_document(path: Path, root: MappingNode) -> str:
    """``Experiment`` or ``Inventory``. Raises BadInput for anything else."""
    entry = child_of(root, "kind")
    node: Node = entry.node if entry else root
    kind = node.value if entry and isinstance(node, ScalarNode) else None
    if kind in KINDS:
        return str(kind)
    if entry is None:
        message, hint = "missing key 'kind'", "write kind: Experiment or kind: Inventory"
    else:
        text = kind if kind is not None else "nothing"
        message, hint = f"unknown kind {text!r}", did_you_mean(str(kind), KINDS)
    raise BadInput([Problem(str(path), node.mark.line, node.mark.column, message, hint)])


def expect_kind(path: Path, root: MappingNode, expected: str) -> None:
    """Raises BadInput if the document is of another kind."""
    kind = kind_of_document(path, root)
    if kind != expected:
        entry = child_of(root, "kind")
        mark = entry.node.mark if entry else root.mark
        article = "an" if expected[0] in "EI" else "a"
        message = f"wrong kind {kind}: {article} {expected} is required here"
        raise BadInput([Problem(str(path), mark.line, mark.column, message)])
