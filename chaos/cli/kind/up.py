"""A kind cluster whose nodes can shut down, and its inventory; what happens to one that fails."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from chaos.app.init import context_names
from chaos.cli.kind.diagnosis import KnownCause, host_warnings, known_cause
from chaos.cli.kind.tools import Echo, Tools
from chaos.cli.lab.workload import wait_for_nodes
from chaos.cli.output import write
from chaos.cluster.client import connect
from chaos.cluster.cluster_state import cluster_uid
from chaos.core.clock import SystemClock
from chaos.core.errors import NodefallError, Refused, UsageError
from chaos.core.files import bundled_path
from chaos.documents.yaml_text import dump
from chaos.engine.connection import refuse_before_side_effects

NAME_CONFLICT = "already exist for a cluster with the name"  # pkg/cluster/internal/create/create.go of kind
RETAIN_HINT = "give --retain to keep the failed cluster and its logs"
HEADER = "# Written by nodefall kind up"
_NAME = re.compile(r"[a-z0-9]([a-z0-9-]{0,38}[a-z0-9])?")
_REGISTRY = {"docker": "", "podman": "docker.io/"}  # podman may have no default registry


@contextmanager
def explained(tools: Tools, name: str) -> Iterator[None]:
    """Add a known cause, which the logs of the nodes may show, to an error."""
    try:
        yield
    except NodefallError as error:
        if NAME_CONFLICT in error.message or not (cause := _find_cause(error, tools, name)):
            raise
        message = error.message if cause.line in error.message else f"{error.message}; {cause.line}"
        raise NodefallError(message, hint=cause.hint) from error


def _find_cause(error: NodefallError, tools: Tools, name: str) -> KnownCause | None:
    if cause := known_cause([error.message]):
        return KnownCause(error.message, cause.hint)
    try:
        for node in tools.nodes(name):
            if cause := known_cause(tools.log(node)):
                return KnownCause(f"{node}: {cause.line}", cause.hint)
    except NodefallError:  # the first error says more than that of an engine that does not respond
        return None
    return None


def down_command(name: str, out: Path) -> str:
    """The command that removes the cluster and its files."""
    given = "" if out == Path(f"{name}.yaml") else f" --out {shlex.quote(str(out))}"
    return f"nodefall kind down --name {name}{given}"


def keep_hint(tools: Tools, name: str, out: Path) -> str:
    """How to look at a cluster that was kept, and how to remove it."""
    return f"look at it with {tools.shown} export logs --name {name}, and remove it with {down_command(name, out)}"


@dataclass(frozen=True, slots=True)
class UpOptions:
    """The options of the command.

    ``image`` replaces the image that is built for ``kubernetes``. ``retain`` keeps a cluster that failed.
    """

    name: str
    out: Path
    kubernetes: str = "v1.36.2"
    image: str | None = None
    config: Path | None = None
    retain: bool = False

    @property
    def kubeconfig(self) -> Path:
        return self.out.with_suffix(".kubeconfig")


def up(options: UpOptions, tools: Tools, echo: Echo) -> dict[str, Any]:
    """Create a cluster; its description as JSON. On failure it is deleted, or kept. Raises NodefallError."""
    if not _NAME.fullmatch(options.name):
        raise UsageError(f"--name: invalid cluster name {options.name!r}; use lower-case letters, digits and dashes")
    for path in (options.out, options.kubeconfig):
        _refuse_existing(path)
    with refuse_before_side_effects():
        tools.check_engine()
        if options.name in tools.clusters():
            raise _already_exists(options.name)
    config = options.config or bundled_path("hosts/kind/cluster.yaml")
    for warning in host_warnings(tools.engine, options.image or options.kubernetes, config, os.environ):
        echo(f"warning: {warning}")
    image = options.image or _build_image(options, tools, echo)
    with _clean_up_on_failure(options, tools, echo), explained(tools, options.name):
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
    elif exists and not options.out.exists() and _has_no_context(options.kubeconfig):
        options.kubeconfig.unlink()  # of a cluster that failed and was retained
    return exists


@contextmanager
def _clean_up_on_failure(options: UpOptions, tools: Tools, echo: Echo) -> Iterator[None]:
    """Delete or keep the cluster on any exception, unless the name belongs to a cluster that existed before."""
    try:
        yield
    except BaseException as error:
        if isinstance(error, NodefallError):
            if NAME_CONFLICT in error.message:
                raise _already_exists(options.name) from error
            error.hint = error.hint or ("" if options.retain else RETAIN_HINT)
        if options.retain and _has_nodes(options, tools):
            _announce_retained(error, keep_hint(tools, options.name, options.out), echo)
        else:
            _delete(error, options, tools, echo)
        raise


def _has_nodes(options: UpOptions, tools: Tools) -> bool:
    """Whether the failed cluster has containers; true if that is unknown."""
    try:
        return bool(tools.nodes(options.name))
    except NodefallError:
        return True


def _announce_retained(error: BaseException, how: str, echo: Echo) -> None:
    echo("the incomplete cluster is kept, because of --retain")
    if isinstance(error, NodefallError):
        error.hint = f"{error.hint}; {how}" if error.hint else how
    else:  # an interruption, which has no hint
        echo(how)


def _delete(error: BaseException, options: UpOptions, tools: Tools, echo: Echo) -> None:
    echo("deleting the incomplete cluster")
    by_hand = f"run {down_command(options.name, options.out)}"
    try:
        tools.delete(options.name, str(options.kubeconfig))
    except NodefallError as failed:
        message = f"{error or type(error).__name__}; and cannot delete the incomplete cluster: {failed.message}"
        raise NodefallError(message, hint=by_hand) from error
    except KeyboardInterrupt:
        echo(f"interrupted while the incomplete cluster was deleted: {by_hand}")
        raise
    _remove_files(options)


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


def _has_no_context(kubeconfig: Path) -> bool:
    """Whether a kubeconfig exists and is empty: kind removes the context of a cluster that it deletes."""
    try:
        return not context_names(str(kubeconfig))[0]
    except NodefallError:
        return False


def _refuse_existing(path: Path) -> None:
    """Raises UsageError for an existing file: it would be overwritten, or extended by kind."""
    if path.exists():
        raise UsageError(f"{path} already exists", hint="remove it with nodefall kind down, or give another --out")


def _build_image(options: UpOptions, tools: Tools, echo: Echo) -> str:
    """Build a stock image with D-Bus, logind and sshd, once for each base image and recipe; its tag.

    The base image counts by its ID, because a tag can be moved to another image.
    """
    folder, base = bundled_path("hosts/kind"), f"{_REGISTRY[tools.engine]}kindest/node:{options.kubernetes}"
    recipe = hashlib.sha256(_require_image(base, tools, echo).encode())
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        recipe.update(path.read_bytes())
    tag = f"localhost/nodefall-kind:{options.kubernetes}-{recipe.hexdigest()[:12]}"
    if not tools.image_id(tag):
        echo(f"building the node image {tag}")
        tools.build(tag, str(folder), {"NODE": base}, echo)
    return tag


def _require_image(name: str, tools: Tools, echo: Echo) -> str:
    """The ID of an image, which is pulled if the engine does not have it. Raises NodefallError."""
    if found := tools.image_id(name):
        return found
    echo(f"pulling {name}")
    tools.pull(name, echo)
    if found := tools.image_id(name):
        return found
    raise NodefallError(f"{tools.engine} image inspect {name}: no image, although it was pulled", hint="give --image")


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
