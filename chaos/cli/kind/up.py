"""``nodefall kind up|down``: a kind cluster whose nodes can shut down, and the inventory that reaches it."""

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
from chaos.kube.client import cluster_uid, connect
from chaos.load.yaml_dump import dump
from chaos.model.errors import NodefallError, Refused, UsageError

HEADER = "# Written by nodefall kind up"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_NAME_CONFLICT = "already exist for a cluster with the name"  # pkg/cluster/internal/create/create.go


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The command line's wishes; ``image`` is used as it is, instead of one that is built for ``kubernetes``."""

    name: str
    out: Path
    kubernetes: str = "v1.36.2"
    image: str | None = None
    config: Path | None = None

    @property
    def kubeconfig(self) -> Path:
        return self.out.with_suffix(".kubeconfig")


def up(wish: UpOptions, tools: Tools, tell: Echo) -> dict[str, Any]:
    """Create it; what it is. What does not come up whole is taken down again. Raises NodefallError."""
    if not _NAME.fullmatch(wish.name):
        raise UsageError(f"--name: {wish.name!r} is no name of a cluster; use small letters, digits and dashes")
    for path in (wish.out, wish.kubeconfig):
        _refuse_existing(path)
    with refuse_before_side_effects():
        tools.check_engine()
        if wish.name in tools.clusters():
            raise _already_exists(wish.name)
    image = wish.image or _build_image(wish, tools, tell)
    with ExitStack() as stack:
        stack.enter_context(_delete_on_failure(wish, tools, tell))
        config = wish.config or bundled_path("hosts/kind/cluster.yaml")
        tools.create(wish.name, str(config), image, str(wish.kubeconfig), tell)
        nodes = tools.nodes(wish.name)
        for node in nodes:
            if why := tools.disable_restart(node):
                tell(f"the restart policy of {node} stays as it is: {why}")
        tell("waiting for the nodes")
        context = f"kind-{wish.name}"
        with closing(connect(str(wish.kubeconfig), context)) as kube, closing(SystemClock()) as clock:
            wait_for_nodes(kube, clock)
            uid = cluster_uid(kube)
        inventory = dump([_inventory(wish, tools.engine, uid, nodes)])
        write(wish.out, f"{HEADER}; nodefall kind down takes it away.\n{inventory}")
    return {"name": wish.name, "inventory": str(wish.out), "kubeconfig": str(wish.kubeconfig), "nodes": nodes}


def down(wish: UpOptions, tools: Tools) -> bool:
    """Delete the cluster and its files; whether there was one. Raises NodefallError."""
    there = wish.name in tools.clusters()
    if there:
        tools.delete(wish.name, str(wish.kubeconfig))
    if _is_generated(wish.out):
        _remove_files(wish)
    return there


@contextmanager
def _delete_on_failure(wish: UpOptions, tools: Tools, tell: Echo) -> Iterator[None]:
    """Delete whatever is there of the cluster when something fails or stops us, but not somebody else's."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, NodefallError) and _NAME_CONFLICT in error.message:
            raise _already_exists(wish.name) from error
        tell("deleting what was made")
        try:
            tools.delete(wish.name, str(wish.kubeconfig))
        except NodefallError as left:
            why = f"{error or type(error).__name__}; and what was made could not be deleted: {left.message}"
            raise NodefallError(why, hint=f"nodefall kind down --name {wish.name}") from error
        _remove_files(wish)
        raise


def _already_exists(name: str) -> Refused:
    hint = f"nodefall kind down --name {name}, or choose another --name"
    return Refused(f"there is a kind cluster {name!r} already", hint=hint)


def _remove_files(wish: UpOptions) -> None:
    for path in (wish.out, wish.kubeconfig):
        path.unlink(missing_ok=True)


def _is_generated(path: Path) -> bool:
    try:
        return path.read_text(encoding="utf-8").startswith(HEADER)
    except (FileNotFoundError, UnicodeDecodeError):
        return False


def _refuse_existing(path: Path) -> None:
    """Raises UsageError for a file that is there: it would be overwritten, or kind would add to it."""
    if path.exists():
        raise UsageError(f"{path} exists already", hint="nodefall kind down takes its own away; or say another --out")


def _build_image(wish: UpOptions, tools: Tools, tell: Echo) -> str:
    """A stock image with D-Bus, logind and sshd; built once for each version and recipe."""
    folder = bundled_path("hosts/kind")
    recipe = hashlib.sha256()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        recipe.update(path.read_bytes())
    tag = f"localhost/nodefall-kind:{wish.kubernetes}-{recipe.hexdigest()[:12]}"
    if not tools.has_image(tag):
        tell(f"building the node image {tag}")
        tools.build(tag, str(folder), {"NODE": f"kindest/node:{wish.kubernetes}"}, tell)
    return tag


def _inventory(wish: UpOptions, engine: str, uid: str, nodes: list[str]) -> dict[str, Any]:
    """A node's container is called like the node; its addresses are looked up when they are needed."""
    power = {"kind": "docker", "engine": engine}
    return {
        "apiVersion": "nodefall.dev/v1alpha1",
        "kind": "Inventory",
        "metadata": {"name": wish.name},
        "cluster": {
            "kubeconfig": wish.kubeconfig.name,
            "context": f"kind-{wish.name}",
            "expectUID": uid,
            "allowNodeProxy": True,  # containers in a virtual machine, as Docker Desktop's, have addresses of their own
        },
        "defaults": {"transport": "docker", "engine": engine},
        "hosts": {node: {"power": power} for node in nodes},
        "limits": {"maxNodes": 1, "minReadyNodes": 2},
    }
