"""``nodefall kind up|down``: a kind cluster whose nodes can shut down, and its inventory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.app.connect import refuse_before_side_effects
from chaos.cli.bundled import bundled_path
from chaos.cli.kind.tools import Echo, Tools
from chaos.cli.lab.workload import wait_for_nodes
from chaos.cli.output import write
from chaos.clock import SystemClock
from chaos.kube.client import connect
from chaos.kube.cluster_info import cluster_uid
from chaos.load.yaml_dump import dump
from chaos.model.errors import NodefallError, Refused, UsageError

HEADER = "# Written by nodefall kind up"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_NAME_CONFLICT = "already exist for a cluster with the name"  # pkg/cluster/internal/create/create.go


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of the command; ``image`` replaces the image that is built for ``kubernetes``."""

    name: str
    out: Path
    kubernetes: str = "v1.36.2"
    image: str | None = None
    config: Path | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.out.with_suffix(".kubeconfig")


def up(options: UpOptions, tools: Tools, echo: Echo) -> dict[str, Any]:
    """Create a cluster; its description as JSON. On failure the cluster is deleted. Raises NodefallError."""
    if not _NAME.fullmatch(options.name):
        raise UsageError(f"--name: invalid cluster name {options.name!r}; use lower-case letters, digits and dashes")
    for path in (options.out, options.kubeconfig):
        _refuse_existing(path)
    with refuse_before_side_effects():
        tools.check_engine()
        if options.name in tools.clusters():
            raise _already_exists(options.name)
    image = options.image or _build_image(options, tools, echo)
    with ExitStack() as stack:
        stack.enter_context(_delete_on_failure(options, tools, echo))
        config = options.config or bundled_path("hosts/kind/cluster.yaml")
        tools.create(options.name, str(config), image, str(options.kubeconfig), echo)
        nodes = tools.nodes(options.name)
        for node in nodes:
            if error := tools.disable_restart(node):
                echo(f"cannot change the restart policy of {node}: {error}")
        echo("waiting for the nodes")
        context = f"kind-{options.name}"
        with closing(connect(str(options.kubeconfig), context)) as kube, closing(SystemClock()) as clock:
            wait_for_nodes(kube, clock)
            uid = cluster_uid(kube)
        inventory = dump([_inventory(options, tools.engine, uid, nodes)])
        write(options.out, f"{HEADER}; nodefall kind down removes it.\n{inventory}")
    return {"name": options.name, "inventory": str(options.out), "kubeconfig": str(options.kubeconfig), "nodes": nodes}


def down(options: UpOptions, tools: Tools) -> bool:
    """Delete the cluster and its files; whether there was one. Raises NodefallError."""
    exists = options.name in tools.clusters()
    if exists:
        tools.delete(options.name, str(options.kubeconfig))
    if _is_generated(options.out):
        _remove_files(options)
    return exists


@contextmanager
def _delete_on_failure(options: UpOptions, tools: Tools, echo: Echo) -> Iterator[None]:
    """Delete the cluster on any exception, unless the name belongs to a cluster that existed before."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, NodefallError) and _NAME_CONFLICT in error.message:
            raise _already_exists(options.name) from error
        echo("deleting the incomplete cluster")
        try:
            tools.delete(options.name, str(options.kubeconfig))
        except NodefallError as failed:
            message = f"{error or type(error).__name__}; and cannot delete the incomplete cluster: {failed.message}"
            raise NodefallError(message, hint=f"run nodefall kind down --name {options.name}") from error
        _remove_files(options)
        raise


def _already_exists(name: str) -> Refused:
    hint = f"run nodefall kind down --name {name}, or choose another --name"
    return Refused(f"the kind cluster {name!r} already exists", hint=hint)


def _remove_files(options: UpOptions) -> None:
    for path in (options.out, options.kubeconfig):
        path.unlink(missing_ok=True)


def _is_generated(path: Path) -> bool:
    try:
        return path.read_text(encoding="utf-8").startswith(HEADER)
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _refuse_existing(path: Path) -> None:
    """Raises UsageError for an existing file: it would be overwritten, or extended by kind."""
    if path.exists():
        raise UsageError(f"{path} already exists", hint="remove it with nodefall kind down, or give another --out")


def _build_image(options: UpOptions, tools: Tools, echo: Echo) -> str:
    """Build a stock image with D-Bus, logind and sshd, once for each version and recipe; its tag."""
    folder = bundled_path("hosts/kind")
    recipe = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        recipe.update(path.read_bytes())
    tag = f"localhost/nodefall-kind:{options.kubernetes}-{recipe.hexdigest()[:12]}"
    if not tools.has_image(tag):
        echo(f"building the node image {tag}")
        tools.build(tag, str(folder), {"NODE": f"kindest/node:{options.kubernetes}"}, echo)
    return tag


def _inventory(options: UpOptions, engine: str, uid: str, nodes: list[str]) -> dict[str, Any]:
    """The inventory of the cluster. Containers have the names of their nodes."""
    power = {"kind": "docker", "engine": engine}
    return {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": options.name},
        "cluster": {
            "kubeconfig": options.kubeconfig.name,
            "context": f"kind-{options.name}",
            "expectUID": uid,
            "allowNodeProxy": True,  # containers in a virtual machine, as Docker Desktop's, have separate addresses
        },
        "defaults": {"transport": "docker", "engine": engine},
        "hosts": {node: {"power": power} for node in nodes},
        "limits": {"maxNodes": 1, "minReadyNodes": 2},
    }
