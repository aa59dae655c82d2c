"""Which kubeconfig and context an inventory is made from."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from chaos.core.errors import UsageError, bad_input
from chaos.documents.document import read_document
from chaos.documents.yaml_tree import to_builtins

_MAX_NAME = 63  # characters, as of a label's value


def default_kubeconfig() -> Path:
    """That of KUBECONFIG, else ~/.kube/config. Raises UsageError if the variable names several."""
    paths = [text for text in os.environ.get("KUBECONFIG", "").split(os.pathsep) if text]
    if len(paths) > 1:
        raise UsageError("KUBECONFIG names several files, and an inventory has one", hint="give --kubeconfig FILE")
    return Path(paths[0]) if paths else Path("~/.kube/config").expanduser()


def inventory_name(context: str) -> str:
    """A context as the name of an inventory and its file: of an ARN, say, what follows the last slash."""
    name = re.sub(r"[^a-z0-9]+", "-", context.rpartition("/")[2].lower()).strip("-")[:_MAX_NAME].strip("-")
    return name or "cluster"


def context_names(kubeconfig: Path) -> tuple[list[str], str]:
    """Names of the contexts, and the current one, "" for none. Raises BadInput for a file that is no kubeconfig."""
    if not kubeconfig.is_file():
        raise bad_input(str(kubeconfig), "there is no such kubeconfig", "give --kubeconfig FILE")
    document: Any = to_builtins(read_document(kubeconfig))
    contexts = document.get("contexts") or []
    try:
        return [str(each["name"]) for each in contexts], str(document.get("current-context") or "")
    except (TypeError, KeyError) as error:
        raise bad_input(str(kubeconfig), "its contexts have no names", "kubectl config get-contexts") from error


def written_path(kubeconfig: Path) -> str:
    """The path as an inventory has it: from the home directory, else absolute."""
    path, home = kubeconfig.absolute(), Path.home()
    return f"~/{path.relative_to(home)}" if path.is_relative_to(home) else str(path)
