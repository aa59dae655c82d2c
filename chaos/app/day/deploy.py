"""Collects what a game day needs in a pod: its files, the secrets and ports that it uses, its permissions."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from chaos.app.day.deploy_needs import ports_of, preferences_of, secret_env_of, secret_files_of
from chaos.app.day.document import LoadedGameDay, cluster_name, day_permissions
from chaos.core.errors import UsageError
from chaos.core.inventory import Cluster, Inventory
from chaos.documents.document import read_text
from chaos.documents.inventory import load_inventory, referenced_files
from chaos.documents.yaml_text import dump
from chaos.gameday.calendar import Calendar, kubernetes_cron, starting_deadline
from chaos.gameday.deploy.deployment import DAY_ROOT, HOME, MAX_DAY_NAME, DayFile, Deployment, SecretFile, Storage

_DEADLINE = 600  # seconds, of a day without a schedule
_MOUNT = "/var/run/secrets/kubernetes.io/serviceaccount"
_SERVER = "https://kubernetes.default.svc"
_NAME = "in-cluster"


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """Where and how a day is deployed. ``secret``: name of the Secret with keys and passwords, "" for that of all.

    ``fleet``: the name of the fleet that runs the day, "" for a CronJob.
    """

    namespace: str
    image: str
    storage: Storage = field(default_factory=Storage)
    secret: str = ""
    fleet: str = ""
    report_url: str = ""


@dataclass(frozen=True, slots=True)
class SecretSource:
    """A key that the Secret must have. ``file``: its path here, which may begin with ``~/``, "" for a variable."""

    key: str
    file: str


def deployment_of(
    day: LoadedGameDay, inventory: Path, options: DeployOptions
) -> tuple[Deployment, tuple[SecretSource, ...]]:
    """What to deploy, and the keys of the Secret that it needs. No cluster is asked. Raises UsageError, BadInput."""
    loaded = load_inventory(inventory)
    cluster = _cluster(loaded, inventory)
    name = day.document.metadata.name
    if len(name) > MAX_DAY_NAME and not options.fleet:
        raise UsageError(f"the name {name} is too long for a CronJob: at most {MAX_DAY_NAME} characters")
    tree = _Tree.of([day.path, inventory, *_day_files(day)])
    place, references = tree.path(inventory), referenced_files(inventory)
    others = [*references.others, *secret_files_of(day.document.spec)]
    files = {_resolve(text, place): text for text in others}
    keys = _secret_keys(files)
    env = secret_env_of(day.document.spec, loaded)
    schedule = day.document.spec.schedule
    deployment = Deployment(
        day=name,
        namespace=options.namespace,
        image=options.image,
        gameday=tree.path(day.path),
        inventory=place,
        files=(*tree.files(), *_kubeconfig_files(references.kubeconfig, place, cluster.context)),
        permissions=tuple(day_permissions(day, loaded)),
        cron=kubernetes_cron(schedule.cron) if schedule else "",
        zone=Calendar(day.document.spec.window).zone.key,
        deadline=starting_deadline(schedule) if schedule else _DEADLINE,
        secret=options.secret or f"nodefall-{name}",
        secret_env=env,
        secret_files=tuple(SecretFile(path, keys[path]) for path in files),
        ports=ports_of(day.document.spec, loaded),
        preferences=preferences_of(_entries(day, inventory), loaded),
        storage=options.storage,
        fleet=options.fleet,
        report_url=options.report_url,
    )
    beside = {text: text if text.startswith("~/") else str(inventory.parent / text) for text in references.others}
    sources = [SecretSource(name, "") for name in env]
    sources += [SecretSource(keys[path], beside.get(text, text)) for path, text in files.items()]
    return deployment, tuple(sources)


def _cluster(inventory: Inventory, path: Path) -> Cluster:
    if inventory.cluster is None:
        raise UsageError(
            f"{path}: a lab lasts only as long as one command, so nothing can be deployed to it",
            hint="give the inventory of a real cluster",
        )
    if not inventory.cluster.expect_uid:
        raise UsageError(
            f"{path}: expectUID is missing, without which a run on a real cluster is refused",
            hint="kubectl get namespace kube-system -o 'jsonpath={.metadata.uid}'",
        )
    return inventory.cluster


def _entries(day: LoadedGameDay, inventory: Path) -> list[dict[str, object]]:
    """The targets of the entries on this cluster, by name."""
    cluster = cluster_name(day, inventory)
    return [
        dict(item.loaded.experiment.spec.targets)
        for item in day.entries
        if not cluster or cluster in (item.entry.clusters or [cluster])
    ]


def _day_files(day: LoadedGameDay) -> Iterator[Path]:
    """Every file that the day refers to. Raises UsageError for a path that means something else in a pod."""
    spec = day.document.spec
    for item in day.entries:
        yield _relative(item.entry.experiment, day.path.parent)
        workload = item.loaded.experiment.spec.workload
        for manifest in workload.manifests if workload else ():
            yield _relative(manifest, item.loaded.path.parent)
    for cluster in spec.clusters:
        yield _relative(cluster.inventory, day.path.parent)


def _relative(text: str, folder: Path) -> Path:
    if text.startswith(("/", "~")):
        raise UsageError(
            f"{text}: an absolute path refers to a different file inside the pod",
            hint="write a path relative to the file that names it",
        )
    return folder / text


@dataclass(frozen=True, slots=True)
class _Tree:
    """The files of a day with their places below DAY_ROOT: as they are beside each other here, so they are there."""

    root: str
    paths: tuple[str, ...]

    @classmethod
    def of(cls, files: Iterable[Path]) -> _Tree:
        paths = tuple(dict.fromkeys(os.path.abspath(path) for path in files))
        return cls(os.path.commonpath([os.path.dirname(path) for path in paths]), paths)

    def path(self, file: Path) -> str:
        """Where the file is in the container."""
        return posixpath.join(DAY_ROOT, Path(os.path.relpath(os.path.abspath(file), self.root)).as_posix())

    def files(self) -> Iterator[DayFile]:
        return (DayFile(self.path(Path(path)), read_text(Path(path))) for path in self.paths)


def _kubeconfig_files(paths: str, inventory: str, context: str | None) -> Iterator[DayFile]:
    """The file of the service account in the place of the first kubeconfig; none where a pod needs none."""
    if paths or context:
        first, *_ = paths.split(":")
        if not first:
            raise UsageError(
                "cluster.context is set, but cluster.kubeconfig is not", hint="name a file, or remove context"
            )
        yield DayFile(_resolve(first, inventory), kubeconfig_text(context))


def _resolve(text: str, inventory: str) -> str:
    """Where the container looks for a file that an inventory at this place names."""
    expanded = HOME + text[1:] if text.startswith("~/") else text
    return posixpath.normpath(posixpath.join(posixpath.dirname(inventory), expanded))


def _secret_keys(paths: Iterable[str]) -> dict[str, str]:
    """A key for each file, by its path: the name of the file."""
    keys: dict[str, str] = {}
    for path in paths:
        base = "".join(letter if letter.isalnum() or letter in "-._" else "_" for letter in posixpath.basename(path))
        key, number = base, 1
        while key in keys.values():
            number += 1
            key = f"{base}.{number}"
        keys[path] = key
    return keys


def kubeconfig_text(context: str | None) -> str:
    """A kubeconfig whose only context has the name that the inventory gives, so that the inventory stays as it is."""
    name = context or _NAME
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": _NAME, "cluster": {"server": _SERVER, "certificate-authority": f"{_MOUNT}/ca.crt"}}],
        "users": [{"name": _NAME, "user": {"tokenFile": f"{_MOUNT}/token"}}],
        "contexts": [{"name": name, "context": {"cluster": _NAME, "user": _NAME}}],
        "current-context": name,
    }
    return dump([document])
