"""What ``nodefall init`` reads of a cluster, and what it says where it may not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from chaos.app.discovery.nodes import KUBEADM_CONFIG, TABLE, ListedMetadata, ListedNode, distribution_of, summary
from chaos.app.init import context_names, inventory_name, read_cluster, written_kubeconfig
from chaos.cluster.errors import REFUSED, KubeUnreachable
from chaos.core.errors import BadInput, Exit, Refused
from chaos.core.kube.node import Address, NodeInfo, NodeSpec, NodeStatus
from chaos.core.ports import Response
from tests.kit.fakes import FakeKube

UID = json.dumps({"metadata": {"uid": "uid-1"}}).encode()
NODES, NAMESPACE = "/api/v1/nodes", "/api/v1/namespaces/kube-system"


class Cluster(FakeKube):
    """Answers by path; ``silent`` paths have no answer."""

    server = "https://10.0.0.1:6443"
    risks = ("its certificate is not verified",)
    silent: tuple[str, ...] = ()

    def answer(self, method: str, path: str, body: Any) -> Response:
        assert method == "GET", "init changes nothing"
        if path in self.silent:
            raise KubeUnreachable(REFUSED, f"{self.server}: connection refused")
        return super().answer(method, path, body)


def cluster(**changed: Response) -> Any:
    items = {"metadata": {"resourceVersion": "1"}, "items": [{"metadata": {"name": "b"}}, {"metadata": {"name": "a"}}]}
    answers = {
        NAMESPACE: Response(200, UID, {}),
        "/version": Response(200, b'{"gitVersion": "v1.36.2"}', {}),
        NODES: Response(200, json.dumps(items).encode(), {}),
    }
    return Cluster(
        answers | {{"nodes": NODES, "namespace": NAMESPACE, "config": KUBEADM_CONFIG}[k]: v for k, v in changed.items()}
    )


def read(kube: Any) -> Any:
    return read_cluster(kube, "c", "~/.kube/config", "c")


FORBIDDEN = Response(403, b'{"message": "User ada cannot list nodes"}', {})


def test_nodes_come_in_the_order_of_their_names_and_risks_are_notes() -> None:
    facts = read(cluster())
    assert [node.name for node in facts.nodes] == ["a", "b"]
    assert (facts.uid, facts.version, facts.has_kubeadm_config) == ("uid-1", "v1.36.2", False)
    assert facts.notes == ("connection: its certificate is not verified",)
    assert read(cluster(config=Response(200, b"{}", {}))).has_kubeadm_config


@pytest.mark.parametrize("what", ["nodes", "namespace"])
def test_a_missing_permission_is_named_with_what_to_grant(what: str) -> None:
    with pytest.raises(Refused, match=r"the cluster cannot be read: .* 403 User ada cannot list nodes") as caught:
        read(cluster(**{what: FORBIDDEN}))
    assert "grant get on the namespace kube-system and list on nodes" in caught.value.hint
    assert caught.value.code is Exit.REFUSED


def test_a_config_map_that_may_not_be_read_is_a_note() -> None:
    facts = read(cluster(config=FORBIDDEN))
    assert facts.notes[-1] == (
        "unknown whether kubeadm created the cluster: reading ConfigMap kubeadm-config failed with status 403"
    )


def test_a_cluster_without_nodes_and_one_that_does_not_answer() -> None:
    with pytest.raises(Refused, match=r"https://10.0.0.1:6443 has no Nodes"):
        read(cluster(nodes=Response(200, b'{"metadata": {}, "items": []}', {})))
    silent = cluster()
    silent.silent = (NODES,)
    with pytest.raises(KubeUnreachable, match="connection refused"):
        read(silent)


@pytest.mark.parametrize(
    ("context", "name"),
    [
        ("staging", "staging"),
        ("arn:aws:eks:eu-west-1:111122223333:cluster/Shop_1", "shop-1"),
        ("gke_shop_europe-west1_prod", "gke-shop-europe-west1-prod"),
        ("kubernetes-admin@kubernetes", "kubernetes-admin-kubernetes"),
        ("---", "cluster"),
        ("x" * 80, "x" * 63),
    ],
)
def test_names_of_inventories(context: str, name: str) -> None:
    assert inventory_name(context) == name


def test_the_kubeconfig_is_that_of_kubectl(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    assert written_kubeconfig("") == "", "as in a pod"
    (tmp_path / ".kube").mkdir()
    for path, name in ((tmp_path / ".kube" / "config", "home"), (tmp_path / "a", "a"), (tmp_path / "b", "b")):
        path.write_text(json.dumps({"contexts": [{"name": name}], "current-context": name}))
        path.chmod(0o600)
    assert (written_kubeconfig(""), context_names("")) == ("~/.kube/config", (["home"], "home"))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/a:")
    assert (written_kubeconfig(""), context_names("")) == ("~/a", (["a"], "a"))
    monkeypatch.setenv("KUBECONFIG", f"{tmp_path}/b:{tmp_path}/none:{tmp_path}/a")
    assert written_kubeconfig("") == "~/b:~/a"
    names, current = context_names("")
    assert (sorted(names), current) == (["a", "b"], "b")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("contexts: [5]", "Expected `object`, got `int`"),
        ("contexts: 5", "Expected `array`"),
        ("[]", "is not a mapping"),
    ],
)
def test_files_that_are_no_kubeconfigs(text: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "k").write_text(text)
    (tmp_path / "k").chmod(0o600)
    with pytest.raises(BadInput, match=why):
        context_names(str(tmp_path / "k"))
    with pytest.raises(BadInput, match="there is no such kubeconfig"):
        context_names(str(tmp_path / "none"))


def node(**more: Any) -> ListedNode:
    info = NodeInfo(kubelet_version=more.get("version", "v1.36.2"), os_image=more.get("image", "Debian"))
    metadata = ListedMetadata("n", more.get("labels"), more.get("annotations"))
    return ListedNode(metadata, NodeSpec(provider_id=more.get("provider")), NodeStatus(node_info=info))


@pytest.mark.parametrize(
    ("shown", "distribution"),
    [
        ({"provider": "kind://docker/kind/n", "annotations": {"kubeadm.alpha.kubernetes.io/cri-socket": "x"}}, "kind"),
        ({"labels": {"eks.amazonaws.com/nodegroup": "a"}}, "EKS"),
        ({"version": "v1.36.2-eks-1a2b3c4"}, "EKS"),
        ({"version": "v1.36.2-gke.1234000"}, "GKE"),
        ({"labels": {"cloud.google.com/gke-nodepool": "a"}}, "GKE"),
        ({"labels": {"kubernetes.azure.com/cluster": "a"}}, "AKS"),
        ({"labels": {"node.openshift.io/os_id": "rhel"}}, "OpenShift"),
        ({"image": "Red Hat Enterprise Linux CoreOS 9.6"}, "OpenShift"),
        ({"version": "v1.36.2+k3s1"}, "k3s"),
        ({"version": "v1.36.2+rke2r1"}, "RKE2"),
        ({"image": "Talos (v1.9.5)"}, "Talos"),
        ({"annotations": {"kubeadm.alpha.kubernetes.io/cri-socket": "x"}}, "kubeadm"),
        ({"provider": "aws:///eu-west-1a/i-1", "image": "Ubuntu 24.04"}, "unknown"),
    ],
)
def test_distributions(shown: dict[str, Any], distribution: str) -> None:
    assert distribution_of([node(), node(**shown)], has_kubeadm_config=False).name == distribution


def test_every_row_of_the_table_has_a_source_and_the_config_map_is_the_last_evidence() -> None:
    assert all(row.source for row in TABLE)
    assert distribution_of([node()], has_kubeadm_config=True).name == "kubeadm"
    assert distribution_of([node(version="v1.36.2+k3s1")], has_kubeadm_config=True).name == "k3s"


def test_the_summary_counts_roles_zones_and_pools() -> None:
    labels = {"topology.kubernetes.io/zone": "a", "karpenter.sh/nodepool": "spot"}
    worker = ListedNode(
        ListedMetadata("w", labels), None,
        NodeStatus(addresses=[Address("InternalIP", "10.0.0.1"), Address("InternalIP", "fd00::1")]),
    )  # fmt: skip
    plane = node(labels={"node-role.kubernetes.io/control-plane": ""})
    assert summary([worker, plane])[:3] == ["2 nodes: 1 control plane, 1 worker", "zones: a (1)", "pools: spot (1)"]
    assert summary([worker, plane])[3].startswith("dual-stack: the first InternalIP")
    assert worker.address == "10.0.0.1"
