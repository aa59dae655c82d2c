"""Manifests of a workload: objects for the namespace of the run, and PriorityClasses."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

from chaos.core.errors import BadInput, Problem, bad_input
from chaos.core.kube_names import DNS_LABEL, OBJECT_NAME
from chaos.core.store.run_directory import stored_workload
from chaos.documents.document import read_text
from chaos.documents.problems import Cursor, ErrorCollector
from chaos.documents.yaml_tree import (
    MappingEntry,
    MappingNode,
    Mark,
    Node,
    ScalarNode,
    SequenceNode,
    compose,
    to_builtins,
)

# Kinds without a namespace in Kubernetes v1.36 (kubectl api-resources --namespaced=false).
_CLUSTER_KIND_NAMES = """
APIService CSIDriver CSINode CertificateSigningRequest ClusterRole ClusterRoleBinding ClusterTrustBundle
ComponentStatus CustomResourceDefinition DeviceClass FlowSchema IPAddress IngressClass MutatingAdmissionPolicy
MutatingAdmissionPolicyBinding MutatingWebhookConfiguration Namespace Node PersistentVolume PriorityClass
PriorityLevelConfiguration ResourceSlice RuntimeClass SelfSubjectAccessReview SelfSubjectReview
SelfSubjectRulesReview ServiceCIDR StorageClass StorageVersionMigration SubjectAccessReview TokenReview
ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration VolumeAttachment
VolumeAttributesClass
"""
# A name as apimachinery's path segments, which those of RBAC are.
_NAME = r"[A-Za-z0-9][A-Za-z0-9._:-]{0,252}"
_PARTS = {
    ("apiVersion",): (rf"(?:{OBJECT_NAME}/)?v[0-9][a-z0-9]*", "an apiVersion"),
    ("kind",): (r"[A-Z][A-Za-z0-9]{0,62}", "a kind"),
    ("metadata", "name"): (_NAME, "a name of an object"),
    ("metadata", "generateName"): (_NAME, "the start of a name"),
    ("metadata", "namespace"): (DNS_LABEL, "a name of a namespace"),
}
_CLUSTER_KINDS = frozenset(_CLUSTER_KIND_NAMES.split())


class LocatedObject(NamedTuple):
    """An object and its position in a file."""

    file: str
    mark: Mark
    object: dict[str, Any]

    @property
    def is_namespaced(self) -> bool:
        return self.object["kind"] not in _CLUSTER_KINDS

    def problem(self, message: str, hint: str = "") -> BadInput:
        """Error about the object."""
        return BadInput([Problem(self.file, *self.mark, message, hint)])


def load_manifests(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Objects of all files, in order. Raises BadInput with the problems of all files."""
    found = _load_all(paths, _check_workload_object)
    names: set[tuple[str, ...]] = set()
    for each in found:
        name = each.object["metadata"].get("name")
        key = str(each.object["apiVersion"]).partition("/")[0], str(each.object["kind"]), name
        if name and key in names:
            raise each.problem(f"there is another {key[1]} {name!r}", "give each object its own name")
        names.add(key)
    return [each.object for each in found]


def load_workload(experiment: Path, names: Iterable[str]) -> list[dict[str, Any]]:
    """Objects of the manifests that an experiment names, of a stored one those beside it. Raises BadInput."""
    stored = stored_workload(experiment)
    return load_manifests([stored] if stored else [experiment.parent / name for name in names])


def load_objects(paths: Iterable[Path]) -> list[LocatedObject]:
    """Like :func:`load_manifests`, but any kind and any namespace is accepted."""
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
    errors = ErrorCollector(str(path))
    documents = [each for document in documents for each in _items(Cursor.of(errors, document), document)]
    for document in documents:
        cursor = Cursor.of(errors, document)
        if isinstance(document, MappingNode):
            _check_object(cursor)
            check(cursor)
        else:
            cursor.report("expected a Kubernetes object (a mapping)")
    errors.raise_if_any()
    if not documents:
        raise bad_input(str(path), "the file has no objects")
    return [LocatedObject(str(path), document.mark, to_builtins(document)) for document in documents]


def _items(cursor: Cursor, document: Node) -> Iterator[Node]:
    """The objects in a list, as kubectl prints one; of any other document itself."""
    items, kind = cursor.get("items").node, cursor.get("kind").text or ""
    if not kind.endswith("List") or not isinstance(items, SequenceNode):
        yield document
        return
    for item, each in zip(items.items, cursor.get("items").items(), strict=True):
        if kind != "List" and isinstance(item, MappingNode):  # only there kind and apiVersion may be left out
            for key, text in (("kind", kind.removesuffix("List")), ("apiVersion", cursor.get("apiVersion").text or "")):
                item.items.setdefault(key, MappingEntry(item.mark, ScalarNode(item.mark, text)))
        yield from _items(each, item)


def _check_object(manifest: Cursor) -> None:
    for key in ("apiVersion", "kind"):
        if not manifest.get(key).text:
            manifest.report(f"a Kubernetes object needs {key}")
    kind = manifest.get("kind")
    if kind.text == "List":
        kind.report("a List needs items", "add them, or remove it")
    metadata = manifest.get("metadata")
    for part, (pattern, what) in _PARTS.items():  # they become parts of a path
        cursor = manifest.get(*part)
        if cursor.text and not re.fullmatch(pattern, cursor.text):
            cursor.report(f"invalid {part[-1]}: {cursor.text[:80]!r} is not {what}")
    if not (metadata.get("name").text or metadata.get("generateName").text):
        manifest.report("a Kubernetes object needs metadata.name")


def _check_workload_object(manifest: Cursor) -> None:
    """Check that an object fits into the namespace of the run."""
    kind, namespace = manifest.get("kind"), manifest.get("metadata", "namespace")
    if kind.text in _CLUSTER_KINDS - {"PriorityClass"}:  # the run removes those by label
        kind.report(f"a {kind.text} has no namespace, so it would outlive the run", "create it before the run")
    if namespace.entry:
        hint = "remove it: the workload runs in a dedicated namespace"
        namespace.report_key("the object sets a namespace", hint)
    if manifest.get("metadata", "finalizers").node and not manifest.get("metadata", "name").text:
        message = "an object with generateName has finalizers, which could not be removed after the run"
        manifest.get("metadata").report_key(message, "give it a name")
