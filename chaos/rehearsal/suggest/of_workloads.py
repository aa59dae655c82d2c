"""Weaknesses of single workloads: how many replicas, where they are, what holds them there, how long they stay."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from chaos.cluster.snapshot.document import Object, name_of
from chaos.core.labels import HOSTNAME_LABEL
from chaos.core.text import count_of
from chaos.lab.facade import labels_of, toleration_seconds, untolerated
from chaos.rehearsal.suggest.model import Model, Workload
from chaos.rehearsal.suggest.weakness import Weakness, WeaknessKind

_UNREACHABLE = "node.kubernetes.io/unreachable"
_DEFAULT = 300  # seconds that the admission of Kubernetes gives pods to stay on a lost node
_LOCAL = ("local", "hostPath")
_ONE_NODE_MODES = frozenset({"ReadWriteOnce", "ReadWriteOncePod"})


def replicas(model: Model) -> Iterator[Weakness]:
    """Workloads of one pod, and those whose pods are all on one node or in one zone."""
    for each in model.workloads:
        if each.kind == "Pod":
            yield _bare(each)
        elif each.replicas == 1:
            yield _single(each)
        elif each.replicas > 1 and each.pods and each.is_on_one_node:
            yield _one_node(each)
        elif each.replicas > 1 and len(model.zones) > 1:
            zones = {model.zone_of(node) for node in each.on_nodes}
            if len(zones) == 1 and zones != {""}:
                yield _one_zone(each, zones.pop(), len(model.zones))


def _bare(workload: Workload) -> Weakness:
    return Weakness(
        WeaknessKind.BARE_POD,
        workload.key,
        (workload.key,),
        {"pods": 1},
        f"The pod {workload.name} has no controller: nothing replaces it when its node is lost or drained.",
        "make it a Deployment or a StatefulSet",
    )


def _single(workload: Workload) -> Weakness:
    node = next(iter(workload.on_nodes), "")
    where = f", on {node}" if node else ""
    return Weakness(
        WeaknessKind.SINGLE_REPLICA,
        workload.key,
        (workload.key, *workload.on_nodes),
        {"replicas": 1},
        f"{workload.key} has a single replica{where}: while that is replaced, there is none.",
        "add a second replica",
        f"replicas={workload.name}:2",
    )


def _one_node(workload: Workload) -> Weakness:
    node, number = next(iter(workload.on_nodes.items()))
    return Weakness(
        WeaknessKind.ONE_NODE,
        workload.key,
        (workload.key, node),
        {"replicas": workload.replicas, "on the node": number},
        f"All {number} pods of {workload.key} are on {node}.",
        f"spread its pods: topologySpreadConstraints with {HOSTNAME_LABEL} and DoNotSchedule",
        f"replicas={workload.name}:{workload.replicas + 1}",
    )


def _one_zone(workload: Workload, zone: str, zones: int) -> Weakness:
    return Weakness(
        WeaknessKind.ONE_ZONE,
        workload.key,
        (workload.key,),
        {"replicas": workload.replicas, "zones": zones},
        f"All {count_of(workload.replicas, 'replica')} of {workload.key} are in zone {zone}, "
        f"and the cluster has {zones} zones.",
        "spread its pods: topologySpreadConstraints with topology.kubernetes.io/zone",
    )


def stateful(model: Model) -> Iterator[Weakness]:
    """StatefulSets of which one node has half of the pods or more: these are not replaced while the node is lost."""
    for each in model.workloads:
        if each.kind != "StatefulSet" or not each.on_nodes:
            continue
        node, number = each.on_nodes.most_common(1)[0]
        if 2 * number >= each.replicas:
            yield Weakness(
                WeaknessKind.STATEFUL_ON_NODE,
                each.key,
                (each.key, node),
                {"replicas": each.replicas, "on the node": number},
                f"{node} runs {number} of {count_of(each.replicas, 'pod')} of {each.key}. If the node dies, they "
                "stay Terminating and are not replaced until it is back or tainted as out of service.",
                f"taint a node that stays dead with node.kubernetes.io/out-of-service; let {each.name} have three "
                "replicas on three nodes",
            )


def volumes(model: Model) -> Iterator[Weakness]:
    """Workloads whose data is on one node, or that lose all pods with a node that holds their volume."""
    claims = {name_of(claim): claim for claim in model.contents.of("persistentvolumeclaims")}
    found = {name_of(volume): volume for volume in model.contents.of("persistentvolumes")}
    for each in model.workloads:
        used = [volume for claim in _claims(each, claims) if (volume := found.get(_volume_name(claim)))]
        local = [volume for volume in used if _is_local(volume)]
        if local:
            yield _local(each, local)
        elif each.is_on_one_node and (held := [volume for volume in used if _is_for_one_node(volume)]):
            yield _attached(each, held)


def _claims(workload: Workload, claims: dict[str, Object]) -> Iterator[Object]:
    for pod in workload.pods:
        for volume in pod["spec"].get("volumes") or ():
            name = (volume.get("persistentVolumeClaim") or {}).get("claimName")
            if claim := claims.get(f"{workload.namespace}/{name}"):
                yield claim


def _volume_name(claim: Object) -> str:
    return str((claim.get("spec") or {}).get("volumeName") or "")


def _is_local(volume: Object) -> bool:
    spec = volume.get("spec") or {}
    terms = ((spec.get("nodeAffinity") or {}).get("required") or {}).get("nodeSelectorTerms") or ()
    keys = {item.get("key") for term in terms for item in term.get("matchExpressions") or ()}
    return any(key in spec for key in _LOCAL) or HOSTNAME_LABEL in keys


def _is_for_one_node(volume: Object) -> bool:
    modes = (volume.get("spec") or {}).get("accessModes") or ()
    return bool(modes) and _ONE_NODE_MODES.issuperset(modes)


def _local(workload: Workload, volumes: list[Object]) -> Weakness:
    return Weakness(
        WeaknessKind.LOCAL_VOLUME,
        workload.key,
        (workload.key, *(name_of(volume) for volume in volumes)),
        {"volumes": len(volumes)},
        f"{workload.key} has {count_of(len(volumes), 'volume')} on the disk of a node: its pods can run nowhere else.",
        "use volumes that other nodes can attach, or let the application replicate its data",
    )


def _attached(workload: Workload, volumes: list[Object]) -> Weakness:
    return Weakness(
        WeaknessKind.ATTACHED_VOLUME,
        workload.key,
        (workload.key, *(name_of(volume) for volume in volumes)),
        {"volumes": len(volumes)},
        f"{workload.key} has {count_of(len(volumes), 'volume')} that one node at a time can have: after the loss of "
        "that node, a replacement waits six minutes until it is detached by force.",
        "taint a node that stays dead with node.kubernetes.io/out-of-service, which detaches its volumes at once",
    )


def tolerations(model: Model) -> Iterator[Weakness]:
    """Workloads whose pods stay on a lost node for longer than the default of five minutes, or for ever."""
    for each in model.workloads:
        seconds = unreachable_seconds(each.pods[0] if each.pods else each.obj["spec"].get("template") or {})
        if each.kind == "Pod" or (seconds is not None and seconds <= _DEFAULT):
            continue
        forever = seconds is None
        how_long = "for ever" if forever else f"for {seconds} s"
        yield Weakness(
            WeaknessKind.STAYS_FOREVER if forever else WeaknessKind.STAYS_LONG,
            each.key,
            (each.key,),
            {"replicas": each.replicas, **({} if seconds is None else {"seconds": seconds})},
            f"Pods of {each.key} tolerate {_UNREACHABLE} {how_long}: "
            f"they are {'not replaced while' if forever else f'replaced {seconds} s after'} their node is lost.",
            "let them tolerate it for 30 s",
            f"tolerationSeconds={each.name}:30",
        )


def unreachable_seconds(pod: Object) -> int | None:
    """For how long a pod stays on an unreachable node; None: for ever. Without a toleration, the default applies."""
    lost = [{"key": _UNREACHABLE, "effect": "NoExecute"}]
    if not pod.get("spec") or untolerated(pod, lost, ("NoExecute",)):
        return _DEFAULT
    seconds = toleration_seconds(pod, lost)
    return None if seconds is None else int(seconds)


def services(model: Model) -> Iterator[Weakness]:
    """What the whole cluster needs, on one node: DNS, admission webhooks that must answer, what is behind balancers."""
    for each, what in _key_workloads(model):
        if each.is_on_one_node:
            node = next(iter(each.on_nodes))
            yield Weakness(
                WeaknessKind.KEY_SERVICE,
                each.key,
                (each.key, node),
                {"replicas": each.replicas},
                f"{each.key} {what}, and runs on {node} alone ({count_of(each.replicas, 'replica')}).",
                "run two replicas on different nodes",
                f"replicas={each.name}:{each.replicas + 1}" if each.kind != "Pod" else "",
            )


def _key_workloads(model: Model) -> Iterator[tuple[Workload, str]]:
    for each in model.workloads:
        if each.namespace == "kube-system" and labels_of(each.obj).get("k8s-app") == "kube-dns":
            yield each, "is the DNS of the cluster"
    for namespace, service in sorted(set(_webhook_services(model))):
        for each in model.serving(namespace, service):
            yield each, "answers an admission webhook with failurePolicy Fail"
    for obj in model.contents.of("services"):
        if (obj.get("spec") or {}).get("type") == "LoadBalancer":
            namespace, _, name = name_of(obj).partition("/")
            for each in model.serving(namespace, name):
                yield each, f"is behind the load balancer of Service {name}"


def _webhook_services(model: Model) -> Iterator[tuple[str, str]]:
    plurals = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    hooks: Iterable[Object] = (
        hook for plural in plurals for obj in model.contents.of(plural) for hook in obj.get("webhooks") or ()
    )
    for hook in hooks:
        service = (hook.get("clientConfig") or {}).get("service") or {}
        if hook.get("failurePolicy", "Fail") == "Fail" and service.get("name"):
            yield str(service.get("namespace", "")), str(service["name"])
