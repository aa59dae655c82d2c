"""What ``nodefall new`` starts from besides answers: the workloads of a cluster, and the experiment of a stored run."""

from __future__ import annotations

from pathlib import Path

import msgspec
from msgspec import Struct

from chaos.app.wiring.connect import connect_cluster
from chaos.cli.inventory import command_inventory, require_running
from chaos.cluster.reads import iter_pages
from chaos.cluster.watch_codec import DECODE_ERRORS, WatchCodec
from chaos.core.errors import NodefallError, Refused
from chaos.core.kube import RESOURCES
from chaos.core.plan import Plan
from chaos.core.ports import KubeApi
from chaos.core.store.run_directory import EXPERIMENT, PLAN, find, load, refuse_untrusted
from chaos.documents.experiment import load_stored_experiment
from chaos.engine.load import experiment_document

_KINDS = {"deployments": "Deployment", "statefulsets": "StatefulSet", "daemonsets": "DaemonSet"}
_SYSTEM = ("kube-", "openshift-", "gke-", "gmp-")  # how the names of namespaces begin that belong to a distribution


class _Metadata(Struct):
    name: str
    namespace: str


class _Spec(Struct):
    replicas: int | None = None


class _Workload(Struct):
    metadata: _Metadata
    spec: _Spec


class FoundWorkload(Struct, frozen=True, order=True):
    """A workload of the cluster; ``owner`` as Kind/name. ``replicas`` is None of a DaemonSet."""

    namespace: str
    owner: str
    replicas: int | None

    @property
    def words(self) -> str:
        """How many pods it asks for."""
        return "a pod on each node" if self.replicas is None else f"{self.replicas} replicas"


def workloads_of(inventory: str | None, namespace: str | None) -> list[FoundWorkload]:
    """The workloads outside system namespaces that ask for pods, or those of ``namespace``. Only lists are read.

    Raises NodefallError, and Refused if there are none.
    """
    with connect_cluster(require_running(command_inventory(inventory))) as connection:
        found = [each for plural in _KINDS for each in _list(connection.kube, plural)]
    chosen = sorted(
        each
        for each in found
        if each.replicas != 0 and (each.namespace == namespace if namespace else not each.namespace.startswith(_SYSTEM))
    )
    if not chosen:
        where = f"namespace {namespace}" if namespace else "the cluster outside system namespaces"
        hint = "kubectl get deployments,statefulsets,daemonsets --all-namespaces"
        raise Refused(f"no Deployment, StatefulSet or DaemonSet with pods in {where}", hint=hint)
    return chosen


def _list(kube: KubeApi, plural: str) -> list[FoundWorkload]:
    found: list[FoundWorkload] = []
    resource = RESOURCES[plural]
    for page, restarts in iter_pages(kube, resource.path, WatchCodec(resource)):
        if restarts:
            found.clear()
        for raw in page.items or ():
            try:
                item = msgspec.json.decode(raw, type=_Workload)
            except DECODE_ERRORS as error:
                raise NodefallError(f"a {_KINDS[plural]} cannot be decoded: {error}") from error
            replicas = None if plural == "daemonsets" else 1 if item.spec.replicas is None else item.spec.replicas
            found.append(FoundWorkload(item.metadata.namespace, f"{_KINDS[plural]}/{item.metadata.name}", replicas))
    return found


def experiment_of(reports: Path, run: str, name: str) -> str:
    """The experiment of a stored run under a new name, with the rules by which it selected its targets.

    Paths of manifests are absolute. Raises UsageError, BadInput.
    """
    directory = find(reports, run)
    refuse_untrusted(directory)
    experiment = load_stored_experiment(directory / EXPERIMENT)
    folder = Path(load(directory, PLAN, Plan).source).parent
    spec = experiment.spec
    if workload := spec.workload:
        paths = [str((folder / each).resolve()) for each in workload.manifests]
        spec = spec.model_copy(update={"workload": workload.model_copy(update={"manifests": paths})})
    metadata = experiment.metadata.model_copy(update={"name": name})
    return experiment_document(experiment.model_copy(update={"metadata": metadata, "spec": spec})).decode()
