"""Any cluster gives an inventory that loads, with a comment for every chosen line and nothing of a Node as YAML."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaos.app.discovery.machines import SshUse, to_document
from chaos.app.discovery.nodes import ListedMetadata, ListedNode
from chaos.app.discovery.powers import PowerChoice
from chaos.app.discovery.proposal import Choices, ClusterFacts, propose
from chaos.app.init import render
from chaos.core.installed_drivers import power_drivers
from chaos.core.inventory import Inventory
from chaos.core.kube.meta import Condition
from chaos.core.kube.node import Address, NodeInfo, NodeSpec, NodeStatus
from chaos.documents.inventory import load_inventory
from chaos.documents.yaml_text import inline

KINDS = {name: driver.settings for name, driver in power_drivers().items()}
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
NAMES = st.from_regex(r"[a-z0-9]([a-z0-9.-]{0,20}[a-z0-9])?", fullmatch=True)
LABELS = st.dictionaries(
    st.sampled_from([
        "node-role.kubernetes.io/control-plane", "eks.amazonaws.com/compute-type", "eks.amazonaws.com/nodegroup",
        "topology.kubernetes.io/zone", "type", "kubernetes.azure.com/cluster", "node.openshift.io/os_id",
    ]),
    st.sampled_from(["fargate", "virtual-kubelet"]) | TEXT,
)  # fmt: skip
IMAGES = st.sampled_from(
    ["Ubuntu 24.04", "Talos (v1.9)", "Bottlerocket OS", "Amazon Linux 2023", "Debian GNU/Linux 12", ""]
)
PROVIDER_IDS = st.sampled_from(["kind://docker/c/n", "aws:///eu-west-1a/i-0a", "openstack:///x", ""]) | TEXT
VERSIONS = st.sampled_from(["v1.36.2", "v1.36.2+k3s1", "v1.36.2-eks-1a", "v1.36.2-gke.1"]) | TEXT


@st.composite
def listed_nodes(draw: st.DrawFn) -> ListedNode:
    info = NodeInfo(
        kubelet_version=draw(VERSIONS), operating_system=draw(st.sampled_from(["linux", "windows", ""])),
        os_image=draw(IMAGES | TEXT),
    )  # fmt: skip
    addresses = [
        Address(draw(st.sampled_from(["InternalIP", "ExternalIP"])), draw(TEXT)) for _ in range(draw(st.integers(0, 2)))
    ]
    status = NodeStatus([Condition("Ready", draw(st.sampled_from(["True", "False"])))], addresses, node_info=info)
    metadata = ListedMetadata(
        draw(NAMES), draw(st.none() | LABELS), draw(st.none() | st.dictionaries(TEXT, TEXT, max_size=2))
    )
    return ListedNode(metadata, NodeSpec(provider_id=draw(st.none() | PROVIDER_IDS)), status)


CLUSTERS = st.builds(
    ClusterFacts,
    name=st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True),
    kubeconfig=st.just("~/.kube/config") | TEXT.filter(lambda text: bool(text) and not text.startswith("~")),
    context=TEXT,
    server=st.just("https://10.0.0.1:6443") | TEXT,
    version=TEXT,
    uid=st.uuids().map(str) | TEXT,
    nodes=st.lists(listed_nodes(), min_size=1, max_size=6, unique_by=lambda node: node.name).map(tuple),
    has_kubeadm_config=st.booleans(),
    notes=st.lists(TEXT, max_size=2).map(tuple),
)
CHOICES = st.builds(
    Choices,
    user=st.none() | TEXT,
    port=st.none() | st.integers(1, 65535),
    identity_file=st.none() | st.just("~/.ssh/id"),
    proxy_jump=st.none() | st.just("ops@bastion.example"),
    known_hosts=st.none() | st.just("c.known_hosts"),
    power=st.none()
    | st.just(PowerChoice({}))
    | st.just(PowerChoice({"kind": "ipmi", "address": "bmc-{node}.example", "user": "a", "password": {"env": "P"}})),
    transport=st.sampled_from([None, "ssh", "openssh", "pod"]),
    ssh_use=st.sampled_from([None, SshUse("name", ("user",)), SshUse("address", ("proxycommand",))]),
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(facts=CLUSTERS, choices=CHOICES)
def test_the_inventory_of_any_cluster_loads(facts: ClusterFacts, choices: Choices, tmp_path: Path) -> None:
    proposal = propose(facts, choices, KINDS)
    text, document = render(proposal, "9.9.9"), to_document(proposal.entries)
    path = tmp_path / "i.yaml"
    path.write_text(text, encoding="utf-8")
    path.chmod(0o644)
    loaded = load_inventory(path)
    assert yaml.safe_load(text) == document, "the same by YAML 1.1"
    assert loaded.metadata.name == facts.name
    assert loaded.cluster
    assert loaded.cluster.expect_uid == facts.uid
    assert loaded.protected.roles == ["control-plane"]
    for node in facts.nodes:
        _, host = loaded.host_of(node.name)
        expected = proposal.access[node.name].transport
        is_defaults = (host.transport or loaded.defaults.transport or "") == expected
        assert is_defaults or not expected
        assert host.os == node.system or not expected


@settings(max_examples=100)
@given(st.recursive(TEXT | st.booleans() | st.integers(), lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner)))
def test_inline_values_are_read_the_same(value: Any) -> None:
    text = inline(value)
    assert "\n" not in text
    assert yaml.safe_load(f"key: {text}") == {"key": value}


def linux(name: str, **more: Any) -> ListedNode:
    labels, provider = more.get("labels", {}), more.get("provider", "")
    info = NodeInfo(os_image=more.get("image", "Debian GNU/Linux 12"), operating_system=more.get("system", "linux"))
    status = NodeStatus([Condition("Ready", "True")], [Address("InternalIP", "10.0.0.1")], node_info=info)
    return ListedNode(ListedMetadata(name, labels), NodeSpec(provider_id=provider), status)


def inventory_of(*nodes: ListedNode, choices: Choices | None = None, kinds: Any = None) -> Inventory:
    facts = ClusterFacts("c", "/k", "c", "https://x", "v1.36.2", "uid", nodes)
    proposal = propose(facts, choices or Choices(), KINDS if kinds is None else kinds)
    return Inventory.model_validate(to_document(proposal.entries))


def test_only_what_differs_from_most_nodes_has_an_entry() -> None:
    amazon = [
        linux(f"a{number}", image="Amazon Linux 2023", provider=f"aws:///eu-west-1a/i-{number}") for number in range(3)
    ]
    ubuntu = linux("u", image="Ubuntu 24.04", provider="aws:///eu-west-1a/i-9")
    windows = linux("w", system="windows", image="Windows Server 2022 Datacenter", provider="aws:///eu-west-1a/i-8")
    inventory = inventory_of(*amazon, ubuntu, windows, kinds={})
    assert inventory.defaults.user == "ec2-user"
    assert set(inventory.hosts) == {"u", "w"}
    assert inventory.hosts["u"].user == "ubuntu"
    assert (inventory.hosts["w"].os, inventory.hosts["w"].transport) == ("windows", "winrm")
    assert inventory.hosts["w"].options == {"password": {"env": "NODEFALL_WINRM_PASSWORD"}}
    given_user = inventory_of(*amazon, ubuntu, choices=Choices(user="ops"), kinds={})
    assert (given_user.defaults.user, given_user.hosts) == ("ops", {})


EKS, GKE, AKS = (
    {"eks.amazonaws.com/nodegroup": "a"},
    {"cloud.google.com/gke-nodepool": "a"},
    {"kubernetes.azure.com/cluster": "a"},
)
RHCOS = "Red Hat Enterprise Linux CoreOS 9.6"


@pytest.mark.parametrize(
    ("node", "choices", "transport"),
    [
        ({}, Choices(), "ssh"),
        ({}, Choices(transport="pod"), "pod"),
        ({"labels": EKS}, Choices(), "pod"),
        ({"labels": GKE}, Choices(), "pod"),
        ({"labels": AKS}, Choices(), "pod"),
        ({"image": RHCOS}, Choices(), "pod"),
        ({"labels": EKS}, Choices(transport="ssh"), "ssh"),
        ({"labels": EKS}, Choices(user="ops"), "ssh"),
        ({"labels": EKS}, Choices(identity_file="~/.ssh/id"), "ssh"),
        ({"labels": EKS, "image": "Bottlerocket OS 1.30"}, Choices(), None),
        ({"image": "Talos (v1.9.5)"}, Choices(transport="pod"), None),
        ({"provider": "kind://docker/c/n"}, Choices(), "docker"),
        ({"provider": "kind://docker/c/n"}, Choices(transport="pod"), "pod"),
        ({"provider": "kind://docker/c/n"}, Choices(transport="ssh"), "ssh"),
        ({"labels": EKS}, Choices(transport="openssh"), "openssh"),
        ({"provider": "kind://docker/c/n"}, Choices(transport="openssh"), "openssh"),
        ({"provider": "kind://docker/c/n"}, Choices(identity_file="~/.ssh/id"), "ssh"),
    ],
)
def test_pods_where_a_login_is_the_exception(node: dict[str, Any], choices: Choices, transport: str | None) -> None:
    """Neither where no shell is on the host: a pod would find none there, too."""
    inventory = inventory_of(linux("n", **node), choices=choices)
    assert inventory.defaults.transport == transport
    assert (inventory.defaults.sudo is True) == (transport in ("ssh", "openssh"))


KIND_POWER = {"kind": "docker", "engine": "podman"}
SSH_TO_KIND = {"transport": "ssh", "sudo": True, "power": KIND_POWER}


@pytest.mark.parametrize(
    ("choices", "defaults", "note"),
    [
        (Choices(), {"transport": "docker", "engine": "podman", "power": KIND_POWER}, ""),
        (Choices(transport="pod"), {"transport": "pod", "power": KIND_POWER}, "create a privileged pod"),
        (Choices(transport="ssh"), {"user": "root", **SSH_TO_KIND}, "kind nodes accept SSH only"),
        (Choices(port=2222), {"user": "root", "port": 2222, **SSH_TO_KIND}, "kind nodes accept SSH only"),
        (Choices(user="ops"), {"user": "ops", **SSH_TO_KIND}, "kind nodes accept SSH only"),
        (Choices(transport="pod", power=PowerChoice({})), {"transport": "pod"}, "create a privileged pod"),
    ],
)
def test_a_chosen_transport_to_kind_nodes_keeps_the_power_control(
    choices: Choices, defaults: dict[str, Any], note: str
) -> None:
    nodes = tuple(linux(f"n{number}", provider=f"kind://podman/c/n{number}") for number in range(2))
    proposal = propose(ClusterFacts("c", "/k", "c", "https://x", "v1", "uid", nodes), choices, KINDS)
    document = to_document(proposal.entries)
    assert document["defaults"] == defaults
    assert "hosts" not in document
    assert document["cluster"]["allowNodeProxy"] is True
    about_transport = [each for each in proposal.notes if "kind nodes" in each or "privileged" in each]
    assert len(about_transport) == bool(note)
    assert all(note in each for each in about_transport)


def test_what_ssh_is_configured_for_is_left_to_it() -> None:
    use = SshUse("name", ("hostname", "proxycommand"))
    proposal = propose(_facts(), Choices(transport="openssh", ssh_use=use), KINDS)
    defaults = to_document(proposal.entries)["defaults"]
    usual = {"transport": "openssh", "options": {"destination": "name"}, "sudo": True}
    assert {key: defaults[key] for key in usual} == usual
    assert "user" not in defaults
    assert "whose configuration sets hostname, proxycommand" in render(proposal, "1.0")
    by_address = Choices(transport="openssh", ssh_use=SshUse("address", ("user",)), user="ops")
    defaults = to_document(propose(_facts(), by_address, KINDS).entries)["defaults"]
    assert "options" not in defaults
    assert defaults["user"] == "ops"


def _facts() -> ClusterFacts:
    return ClusterFacts("c", "/k", "c", "https://x", "v1", "uid", (linux("n1"), linux("n2")))


def test_windows_nodes_keep_theirs_beside_pods() -> None:
    inventory = inventory_of(linux("n", labels=AKS), linux("w", labels=AKS, system="windows"))
    assert inventory.defaults.transport == "pod"
    assert inventory.hosts["w"].transport == "winrm"


@pytest.mark.parametrize("image", ["Talos (v1.9.5)", "Bottlerocket OS 1.30.0 (aws-k8s-1.31)"])
def test_nodes_without_a_shell_get_no_transport_and_a_plain_note(image: str) -> None:
    facts = ClusterFacts("c", "/k", "c", "https://x", "v1", "uid", tuple(linux(f"n{n}", image=image) for n in range(6)))
    proposal = propose(facts, Choices(), KINDS)
    assert "transport" not in to_document(proposal.entries)["defaults"]
    note = next(note for note in proposal.notes if note.startswith("no commands on"))
    assert note.startswith("no commands on n0, n1, n2, n3 and 2 more: ")
    assert "only actions of the API work" in note


def test_the_power_of_a_provider_is_proposed_only_with_its_driver() -> None:
    from typing import Literal  # noqa: PLC0415

    from chaos.core.driver import PowerSettings  # noqa: PLC0415

    class Machine(PowerSettings):
        kind: Literal["aws"]
        region: str
        instance: str

    class Shared(PowerSettings):
        kind: Literal["aws"]
        region: str

        @property
        def names_machine(self) -> bool:
            return False

    class Other(PowerSettings):
        kind: Literal["aws"]
        account: str

    nodes = [linux(f"n{number}", provider=f"aws:///eu-west-1{'ab'[number % 2]}/i-{number}") for number in range(3)]
    facts = ClusterFacts("c", "/k", "c", "https://x", "v1", "uid", tuple(nodes))

    def power(kinds: Any) -> tuple[Any, dict[str, Any]]:
        document = to_document(propose(facts, Choices(), kinds).entries)
        return document["defaults"].get("power"), document.get("hosts", {})

    manual = {"kind": "manual", "deadline": "10m"}
    assert power({}) == (manual, {})
    assert power({"aws": Other}) == (manual, {}), "the provider ID does not show the account"
    assert power({"aws": Shared}) == ({"kind": "aws", "region": "eu-west-1"}, {})
    assert power({"aws": Machine}) == (
        None, {f"n{n}": {"power": {"kind": "aws", "region": "eu-west-1", "instance": f"i-{n}"}} for n in range(3)}
    )  # fmt: skip


def test_every_chosen_line_has_a_comment() -> None:
    nodes = tuple(linux(f"n{number}") for number in range(2))
    facts = ClusterFacts("c", "/k", "c", "https://x", "v1", "uid", nodes)
    choices = Choices("ops", 2222, "~/.ssh/id", "ops@bastion.example", "c.known_hosts")
    lines = render(propose(facts, choices, KINDS), "9.9.9").splitlines()
    for before, line in pairwise(lines):
        if line.startswith("  ") and not line.lstrip().startswith("#"):
            assert "  # " in line or before.startswith("  # "), line
