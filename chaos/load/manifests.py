"""Manifests of an experiment's workload: namespaced objects, which nodefall puts into a namespace of its own."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from chaos.load.compose import compose
from chaos.load.cursor import Cursor, Problems
from chaos.load.files import read_text
from chaos.load.tree import Entry, Mapping, plain
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


def load_manifests(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """All objects of the files, in order. Raises BadInput with the problems of all files."""
    objects: list[dict[str, Any]] = []
    found: list[Problem] = []
    for path in paths:
        try:
            objects += _load(path)
        except BadInput as error:
            found += error.problems
    if found:
        raise BadInput(found)
    return objects


def _load(path: Path) -> list[dict[str, Any]]:
    documents = compose(str(path), read_text(path), old_octal=True)
    if not documents:
        raise bad_input(str(path), "holds no object")
    problems = Problems(str(path))
    for document in documents:
        _check(Cursor(problems, Entry(document.mark, document)))
    problems.check()
    return [plain(document) for document in documents]


def _check(manifest: Cursor) -> None:
    if not isinstance(manifest.node, Mapping):
        manifest.report("expected a Kubernetes object (a mapping)")
        return
    for key in ("apiVersion", "kind"):
        if not manifest.get(key).text:
            manifest.report(f"a Kubernetes object needs {key}")
    kind = manifest.get("kind")
    if kind.text in _CLUSTER_KINDS:
        kind.report(f"a {kind.text} has no namespace, so it would outlive the run", "create it before, by hand")
    elif (kind.text or "").endswith("List"):
        kind.report(f"a {kind.text} is not supported", "write its items as documents of their own, divided by ---")
    metadata = manifest.get("metadata")
    if not (metadata.get("name").text or metadata.get("generateName").text):
        manifest.report("a Kubernetes object needs metadata.name")
    if metadata.get("namespace").entry:
        hint = "leave it out: the workload gets a namespace of its own"
        metadata.get("namespace").report_key("the object names a namespace", hint)
