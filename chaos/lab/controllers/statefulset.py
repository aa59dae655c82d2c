"""StatefulSets: one pod per ordinal, never two; Parallel and OrderedReady. Facts 5.7."""

from __future__ import annotations

from chaos.lab.controllers.workload import WorkloadController
from chaos.lab.objects import Object, is_deleting, is_ready, is_terminal, name_of, namespace_of, template_hash
from chaos.lab.store import clone


class StatefulSets(WorkloadController):
    plural, kind, owned, component = "statefulsets", "StatefulSet", "pods", "statefulset-controller"

    def sync(self, owner: Object) -> None:
        pods = {_ordinal(pod): pod for pod in self._owned(owner)}
        ordered = owner["spec"]["podManagementPolicy"] == "OrderedReady"
        replicas = owner["spec"]["replicas"]
        for ordinal in range(replicas):
            settled = self._replica(owner, ordinal, pods.get(ordinal))
            if ordered and not settled:
                break
        else:
            self._scale_down(owner, ordered, [pods[key] for key in sorted(pods, reverse=True) if key >= replicas])
        self._status(owner, self._owned(owner))

    def _replica(self, owner: Object, ordinal: int, pod: Object | None) -> bool:
        """One ordinal; whether it is Running, Ready and not terminating. STS processReplica."""
        if pod is None:
            self._create_claims(owner, ordinal)
            self._create_pod(
                owner, self._ordinal_pod(owner, ordinal), f"Create Pod {{}} in StatefulSet {name_of(owner)} successful"
            )
            return False
        if is_terminal(pod) and not is_deleting(pod):
            text = f"Delete Pod {{}} in StatefulSet {name_of(owner)} successful"
            self._delete_pod(owner, pod, text)
            return False
        if is_deleting(pod) and self._registry.spec.broken("statefulset-replaced-before-removal"):
            self._registry.delete("pods", namespace_of(pod), name_of(pod), 0)
        return is_ready(pod) and not is_deleting(pod)

    def _scale_down(self, owner: Object, ordered: bool, surplus: list[Object]) -> None:
        for pod in surplus:
            if not is_deleting(pod):
                self._delete_pod(owner, pod, f"Delete Pod {{}} in StatefulSet {name_of(owner)} successful")
            if ordered:
                return

    def _create_claims(self, owner: Object, ordinal: int) -> None:
        """Claims outlive their pods, so a replacement finds its volume."""
        for template in owner["spec"].get("volumeClaimTemplates") or []:
            name = _claim_name(owner, template, ordinal)
            if self._store.get("persistentvolumeclaims", namespace_of(owner), name) is None:
                labels = dict(owner["spec"]["selector"]["matchLabels"])
                metadata = {"name": name, "namespace": namespace_of(owner), "labels": labels}
                claim = {"metadata": metadata, "spec": clone(template["spec"])}
                self._registry.create("persistentvolumeclaims", claim)

    def _ordinal_pod(self, owner: Object, ordinal: int) -> Object:
        name = f"{name_of(owner)}-{ordinal}"
        labels = {
            "apps.kubernetes.io/pod-index": str(ordinal),
            "controller-revision-hash": _revision(owner),
            "statefulset.kubernetes.io/pod-name": name,
        }
        pod = self._new_pod(owner, labels)
        pod["metadata"]["name"] = name
        pod["spec"].update(hostname=name, subdomain=owner["spec"]["serviceName"])
        for template in owner["spec"].get("volumeClaimTemplates") or []:
            claim = {"claimName": _claim_name(owner, template, ordinal)}
            volume = {"name": template["metadata"]["name"], "persistentVolumeClaim": claim}
            pod["spec"].setdefault("volumes", []).append(volume)
        return pod

    def _status(self, owner: Object, pods: list[Object]) -> None:
        ready = sum(is_ready(pod) and not is_terminal(pod) for pod in pods)
        number = sum(not is_terminal(pod) for pod in pods)
        revision = _revision(owner)
        status: Object = {"replicas": number, "availableReplicas": ready, "collisionCount": 0}
        status |= {"currentRevision": revision, "updateRevision": revision}
        if ready:
            status["readyReplicas"] = ready
        if number:
            status |= {"currentReplicas": number, "updatedReplicas": number}
        self._write_status(owner, status)


def _claim_name(owner: Object, template: Object, ordinal: int) -> str:
    return f"{template['metadata']['name']}-{name_of(owner)}-{ordinal}"


def _ordinal(pod: Object) -> int:
    return int(name_of(pod).rsplit("-", 1)[1])


def _revision(owner: Object) -> str:
    return f"{name_of(owner)}-{template_hash(owner['spec']['template'])}"
