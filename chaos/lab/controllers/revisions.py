"""ControllerRevisions: the history of templates of a StatefulSet or DaemonSet. pkg/controller/history."""

from __future__ import annotations

from collections.abc import Collection

from chaos.lab.apiserver.registry import Registry
from chaos.lab.apiserver.store import clone
from chaos.lab.objects.accessors import Object, labels_of, name_of, namespace_of, owner_reference, template_hash, uid_of

LABEL = "controller-revision-hash"  # on pods
_PLURAL = "controllerrevisions"


def revision_of(pod: Object) -> str:
    """Revision of the pod by its label, empty if it has none."""
    return labels_of(pod).get(LABEL, "")


def template_of(revision: Object) -> Object:
    """Pod template of a revision."""
    return {key: value for key, value in revision["data"]["spec"]["template"].items() if key != "$patch"}


def new_revision(owner: Object, kind: str, digest: str, number: int) -> Object:
    """New revision with the owner's template."""
    labels = dict(owner["spec"]["template"]["metadata"]["labels"])
    return {
        "metadata": {
            "name": f"{name_of(owner)}-{digest}",
            "namespace": namespace_of(owner),
            "labels": labels | {LABEL: digest},
            "annotations": dict(owner["metadata"].get("annotations") or {}),
            "ownerReferences": [owner_reference("apps/v1", kind, owner)],
        },
        "data": {"spec": {"template": {**clone(owner["spec"]["template"]), "$patch": "replace"}}},
        "revision": number,
    }


class Revisions:
    """Revisions of the owners of one kind."""

    def __init__(self, registry: Registry, kind: str) -> None:
        self._registry, self._store, self._kind = registry, registry.store, kind

    def all(self, owner: Object) -> list[Object]:
        """Revisions of the owner, the oldest first."""
        return sorted(self._store.list_controlled(_PLURAL, uid_of(owner)), key=lambda item: int(item["revision"]))

    def newest(self, owner: Object) -> Object:
        """Revision of the owner's current template: the last one, an old one made the last, or a new one.

        Raises ForbiddenError in a namespace that is being terminated.
        """
        known = self.all(owner)
        same = [item for item in known if template_of(item) == owner["spec"]["template"]]
        number = max((item["revision"] for item in known), default=0) + 1
        if not same:
            created = new_revision(owner, self._kind, template_hash(owner["spec"]["template"]), number)
            return self._store.get(_PLURAL, namespace_of(owner), name_of(created)) or self._registry.create(
                _PLURAL, created
            )
        if same[-1] is known[-1]:
            return same[-1]
        return self._registry.update(_PLURAL, {**clone(same[-1]), "revision": number})

    def trim(self, owner: Object, live: Collection[str]) -> None:
        """Delete the oldest unused revisions beyond revisionHistoryLimit. ``live``: names and hashes in use."""
        old = [item for item in self.all(owner) if not {name_of(item), labels_of(item)[LABEL]} & set(live)]
        for item in old[: max(0, len(old) - owner["spec"].get("revisionHistoryLimit", 10))]:
            self._registry.delete(_PLURAL, namespace_of(item), name_of(item))
