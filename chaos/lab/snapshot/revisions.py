"""Revisions of workloads: a snapshot has no environment and no arguments, so templates that differ may look alike."""

from __future__ import annotations

from collections import defaultdict

from chaos.lab.apiserver.store import Store, clone
from chaos.lab.controllers.workload import new_revision, revision_of
from chaos.lab.objects.accessors import Object, controller_of, name_of, namespace_of, uid_of

_REVISION = "deployment.kubernetes.io/revision"
_EARLIER = "nodefall.dev/earlier-revision"
_PLURALS = {"StatefulSet": "statefulsets", "DaemonSet": "daemonsets"}


def with_marked_templates(replica_sets: list[Object]) -> list[Object]:
    """ReplicaSets, with an annotation in the templates of those that are not the last of their Deployment.

    So the Deployment finds its own set.
    """
    last: dict[str, int] = defaultdict(int)
    for item in replica_sets:
        last[_owner_uid(item)] = max(last[_owner_uid(item)], _number(item))
    result = []
    for item in replica_sets:
        new: Object = clone(item)
        if _owner_uid(item) and _number(item) < last[_owner_uid(item)]:
            _mark(new["spec"]["template"], str(_number(item)))
        result.append(new)
    return result


def with_template_data(revisions: list[Object], store: Store) -> list[Object]:
    """ControllerRevisions with the template of their owner; earlier ones with an annotation in it."""
    last: dict[str, int] = defaultdict(int)
    for item in revisions:
        last[_owner_uid(item)] = max(last[_owner_uid(item)], int(item.get("revision") or 0))
    result = []
    for item in revisions:
        reference = controller_of(item) or {}
        plural = _PLURALS.get(str(reference.get("kind")), "")
        owner = store.get(plural, namespace_of(item), str(reference.get("name"))) if plural else None
        if owner is None or uid_of(owner) != reference["uid"]:
            continue
        number = int(item.get("revision") or 0)
        template: Object = clone(owner["spec"]["template"])
        if number < last[reference["uid"]]:
            _mark(template, str(number))
        new: Object = clone(item)
        result.append({**new, "data": {"spec": {"template": {**template, "$patch": "replace"}}}, "revision": number})
    return result


def inferred_revisions(plural: str, owner: Object, pods: list[Object]) -> list[Object]:
    """Revisions of a StatefulSet or DaemonSet of which none could be read, by the labels of its ``pods``.

    The last one is updateRevision of a StatefulSet, and that of the youngest pod of a DaemonSet.
    """
    kind = next(kind for kind, each in _PLURALS.items() if each == plural)
    prefix = f"{name_of(owner)}-"
    ordered = sorted(pods, key=lambda pod: str(pod["metadata"].get("creationTimestamp", "")))
    digests = list(
        dict.fromkeys(revision_of(pod).removeprefix(prefix) for pod in reversed(ordered) if revision_of(pod))
    )
    update = str((owner.get("status") or {}).get("updateRevision") or "").removeprefix(prefix)
    if update:
        digests = [update, *(digest for digest in digests if digest != update)]
    result = []
    for index, digest in enumerate(digests):
        revision = new_revision(owner, kind, digest, len(digests) - index)
        if index:
            _mark(revision["data"]["spec"]["template"], digest)
        result.append(revision)
    return result


def _number(replica_set: Object) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(_REVISION) or 0)


def _owner_uid(obj: Object) -> str:
    return str((controller_of(obj) or {}).get("uid", ""))


def _mark(template: Object, value: str) -> None:
    metadata = template.setdefault("metadata", {})
    metadata["annotations"] = {**(metadata.get("annotations") or {}), _EARLIER: value}
