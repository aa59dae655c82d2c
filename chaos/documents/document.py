"""Files with a single document of a known kind; unreadable, oversized and untrusted files are refused."""

from __future__ import annotations

import os
import shlex
import stat
from pathlib import Path

from chaos.core.errors import BadInput, Problem, bad_input
from chaos.core.files import missing_file_hint
from chaos.core.trusted_files import read_trusted
from chaos.documents.problems import Cursor, ErrorCollector
from chaos.documents.wording import did_you_mean
from chaos.documents.yaml_tree import MappingNode, Node, ScalarNode, child_of, compose

MAX_BYTES = 2 * 1024 * 1024
API_VERSION = "nodefall.dev/v1alpha1"
KINDS = ("Experiment", "Inventory", "GameDay", "Fleet", "Statements")
_WITH_A = ("GameDay", "Fleet")
_SWAPPED = {
    "Experiment": "give an inventory with --inventory, and an experiment as EXPERIMENT",
    "Inventory": "give an experiment as EXPERIMENT, and an inventory with --inventory",
    "GameDay": "give a game day as GAMEDAY, and run an experiment by itself with nodefall run",
    "Fleet": "give a fleet with --fleet, and a game day for one cluster as GAMEDAY",
    "Statements": "check it with nodefall validate",
}
_WRITE = {
    "Experiment": "write it with nodefall new {path}",
    "Inventory": "write it with nodefall init --out {path}",
}


def read_text(path: Path, remedy: str = "") -> str:
    """The text of ``path``. Raises BadInput if it is missing, no file, too large, not UTF-8, or others can write it.

    ``remedy``: what to do about a missing one, in the imperative.
    """
    name = str(path)
    try:
        _refuse_by_status(name, path.stat())
        data = read_trusted(path, MAX_BYTES)
    except FileNotFoundError:
        raise bad_input(name, "file not found", missing_file_hint(path, remedy)) from None
    except (OSError, ValueError) as error:
        reason = (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
        raise bad_input(name, f"cannot read the file: {reason}") from None
    return _decode(name, data)


def _refuse_by_status(name: str, status: os.stat_result) -> None:
    mode, size = status.st_mode, status.st_size
    if stat.S_ISDIR(mode):
        raise bad_input(name, "is a directory", f"pass its files: {name.rstrip('/')}/*.yaml")
    if not stat.S_ISREG(mode):
        raise bad_input(name, "is not a regular file", "save it as a file first")
    if size > MAX_BYTES:
        raise bad_input(name, f"too large: {size} bytes, the limit is {MAX_BYTES} bytes")


def _decode(name: str, data: bytes) -> str:
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
        byte = data[error.start]
        hint = "save it as UTF-8"
        raise BadInput([Problem(name, line, column, f"is not UTF-8 (byte 0x{byte:02x})", hint)]) from None


def read_document(path: Path, kind: str = "") -> MappingNode:
    """The document of a file. Raises BadInput if it is unreadable, invalid, empty, no mapping or not the only one.

    ``kind``: that is expected, for the hint about a missing file.
    """
    name = str(path)
    documents = compose(name, read_text(path, _WRITE.get(kind, "").format(path=shlex.quote(name))))
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


def open_document(path: Path, kind: str, *, is_stored: bool = False) -> Cursor:
    """The document of a file, which is of this kind; ``is_stored``: nodefall wrote it. Raises BadInput."""
    root = read_document(path, "" if is_stored else kind)
    expect_kind(path, root, kind)
    return Cursor.of(ErrorCollector(str(path)), root)


def kind_of_document(
    path: Path, root: MappingNode, expected: str = "an Experiment, an Inventory, a GameDay or a Fleet"
) -> str:
    """One of KINDS. Raises BadInput for anything else, where ``expected`` is required."""
    entry = child_of(root, "kind")
    node: Node = entry.node if entry else root
    kind = node.value if entry and isinstance(node, ScalarNode) else None
    if kind in KINDS:
        return str(kind)
    if other := _document_of_kubernetes(path, root, kind):
        message, hint = f"{other[0]}: {expected} is required here", other[1]
    elif entry is None:
        message, hint = "missing key 'kind'", "write kind: Experiment, kind: Inventory, kind: GameDay or kind: Fleet"
    else:
        text = kind if kind is not None else "nothing"
        message, hint = f"unknown kind {text!r}", did_you_mean(str(kind), KINDS)
    raise BadInput([Problem(str(path), node.mark.line, node.mark.column, message, hint)])


def expect_kind(path: Path, root: MappingNode, expected: str) -> None:
    """Raises BadInput if the document is of another kind."""
    required = f"{'a' if expected in _WITH_A else 'an'} {expected}"
    kind = kind_of_document(path, root, required)
    if kind != expected:
        entry = child_of(root, "kind")
        mark = entry.node.mark if entry else root.mark
        message = f"wrong kind {kind}: {required} is required here"
        raise BadInput([Problem(str(path), mark.line, mark.column, message, _SWAPPED[expected])])


def _document_of_kubernetes(path: Path, root: MappingNode, kind: object) -> tuple[str, str] | None:
    """What a kubeconfig or a manifest is, and where to name it; None for any other document."""
    version = child_of(root, "apiVersion")
    written = version.node.value if version and isinstance(version.node, ScalarNode) else None
    if child_of(root, "clusters") and (kind == "Config" or child_of(root, "current-context")):
        return "this is a kubeconfig", f"name it in an inventory: cluster: {{kubeconfig: {path}}}"
    if kind and isinstance(written, str) and not written.startswith("nodefall"):
        return (
            f"this is a manifest of Kubernetes ({kind})",
            f"name it in an experiment: workload: {{manifests: [{path}]}}",
        )
    return None
