"""Manifests of a workload: objects that nodefall puts into a namespace of its own, and PriorityClasses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

from chaos.load.error_collector import Cursor, ErrorCollector
from chaos.load.files import read_text
from chaos.load.tree import MappingEntry, MappingNode, Mark, to_builtins
from chaos.load.yaml_nodes import compose
from chaos.model.errors import BadInput, Problem, bad_input

# Kinds without a namespace in Kubernetes v1.36 (kubectl api-resources --namespaced=false).
_CLUSTER_KINDS = frozenset(
    (
        "APIService",
        "CSIDriver",
        "CSINode",
        "CertificateSigningRequest",
        "ClusterRole",
        "ClusterRoleBinding",
        "ClusterTrustBundle",
        "ComponentStatus",
        "CustomResourceDefinition",
        "DeviceClass",
        "FlowSchema",
        "IPAddress",
        "IngressClass",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
        "MutatingWebhookConfiguration",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "PriorityLevelConfiguration",
        "ResourceSlice",
        "RuntimeClass",
        "SelfSubjectAccessReview",
        "SelfSubjectReview",
        "SelfSubjectRulesReview",
        "ServiceCIDR",
        "StorageClass",
        "StorageVersionMigration",
        "SubjectAccessReview",
        "TokenReview",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "ValidatingWebhookConfiguration",
        "VolumeAttachment",
        "VolumeAttributesClass",
    )
)


class LocatedObject(NamedTuple):
    """An object and where it stands."""

    file: str
    mark: Mark
    object: dict[str, Any]

    @property
    def is_namespaced(self) -> bool:
        return self.object["kind"] not in _CLUSTER_KINDS

    def problem(self, message: str, hint: str = "") -> BadInput:
        """An error about it."""
        return BadInput([Problem(self.file, *self.mark, message, hint)])


def load_manifests(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """All objects of the files, in order. Raises BadInput with the problems of all files."""
    return [located.object for located in _load_all(paths, _check_workload_object)]


def load_objects(paths: Iterable[Path]) -> list[LocatedObject]:
    """Like :func:`load_manifests`, but objects may name a namespace, or have none."""
    return _load_all(paths, lambda _: None)


def _load_all(paths: Iterable[Path], check: Callable[[Cursor], None]) -> list[LocatedObject]:
    objects: list[LocatedObject] = []
    found: list[Problem] = []
    for path in paths:
        try:
            objects += _load(path, check)
        except BadInput as error:
            found += error.problems
    if found:
        raise BadInput(found)
    return objects


def _load(path: Path, check: Callable[[Cursor], None]) -> list[LocatedObject]:
    documents = compose(str(path), read_text(path), old_octal=True)
    if not documents:
        raise bad_input(str(path), "holds no object")
    problems = ErrorCollector(str(path))
    for document in documents:
        cursor = Cursor(problems, MappingEntry(document.mark, document))
        if isinstance(document, MappingNode):
            _check_object(cursor)
            check(cursor)
        else:
            cursor.report("expected a Kubernetes object (a mapping)")
    problems.raise_if_any()
    return [LocatedObject(str(path), document.mark, to_builtins(document)) for document in documents]


def _check_object(manifest: Cursor) -> None:
    for key in ("apiVersion", "kind"):
        if not manifest.get(key).text:
            manifest.report(f"a Kubernetes object needs {key}")
    kind = manifest.get("kind")
    if (kind.text or "").endswith("List"):
        kind.report(f"a {kind.text} is not supported", "write its items as documents of their own, divided by ---")
    metadata = manifest.get("metadata")
    if not (metadata.get("name").text or metadata.get("generateName").text):
        manifest.report("a Kubernetes object needs metadata.name")


def _check_workload_object(manifest: Cursor) -> None:
    """What can be put into a namespace of the run's own."""
    kind, namespace = manifest.get("kind"), manifest.get("metadata", "namespace")
    if kind.text in _CLUSTER_KINDS - {"PriorityClass"}:  # which the run removes again, by its label
        kind.report(f"a {kind.text} has no namespace, so it would outlive the run", "create it before, by hand")
    if namespace.entry:
        hint = "leave it out: the workload gets a namespace of its own"
        namespace.report_key("the object names a namespace", hint)
