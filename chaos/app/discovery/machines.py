"""How the machine of a Node can be reached: its provider, transport, login and power control, or why there is none."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from chaos.app.discovery.nodes import AKS, EKS, GKE, KIND, OPENSHIFT, ListedNode, distribution_of_node


@dataclass(frozen=True, slots=True)
class Entry:
    """A key with its value: entries below it, or a scalar, list or mapping that is written on the same line."""

    key: str
    value: Any
    reason: str = ""


Entries = tuple[Entry, ...]


def to_document(entries: Entries) -> dict[str, Any]:
    """The tree as a mapping of builtins."""
    return {each.key: to_document(each.value) if is_section(each) else each.value for each in entries}


def is_section(entry: Entry) -> bool:
    """Whether its value are entries."""
    return isinstance(entry.value, tuple)


Transport = Literal["ssh", "openssh", "winrm", "docker", "pod", ""]
LinuxTransport = Literal["ssh", "openssh", "pod"]  # those that a person may choose


@dataclass(frozen=True, slots=True)
class SshUse:
    """What an ssh configuration sets for the machines, and by what it knows them: an option of transport openssh."""

    destination: Literal["name", "address"]
    keys: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Provider:
    """Provider IDs of a cloud or hypervisor: ``pattern`` has a group for each key that a power control may need."""

    kind: str
    name: str
    pattern: str
    source: str


PROVIDERS = (
    Provider(
        "aws", "Amazon EC2", r"aws:///(?P<zone>(?P<region>[a-z]+(?:-[a-z]+)+-\d+)[a-z]?)/(?P<instance>i-[0-9a-f]+)",
        "kubernetes/cloud-provider-aws: pkg/providers/v1/instances.go",
    ),
    Provider(
        "gcp", "Google Compute Engine", r"gce://(?P<project>[^/]+)/(?P<zone>[^/]+)/(?P<instance>[^/]+)",
        "kubernetes/cloud-provider-gcp: providers/gce/gce_util.go",
    ),
    Provider(
        "azure", "Azure",
        r"azure:///subscriptions/(?P<subscription>[^/]+)/resourceGroups/(?P<resourceGroup>[^/]+)/providers/"
        r"Microsoft\.Compute/(?P<instance>virtualMachine(?:s|ScaleSets)/.+)",
        "kubernetes-sigs/cloud-provider-azure: pkg/provider/azure_wrap.go",
    ),
    Provider(
        "openstack", "OpenStack", r"openstack://(?P<region>[^/]*)/(?P<instance>[0-9a-f-]{36})",
        "kubernetes/cloud-provider-openstack: pkg/openstack/instances.go",
    ),
    Provider("vsphere", "vSphere", r"vsphere://(?P<instance>[0-9a-fA-F-]{36})", "kubernetes/cloud-provider-vsphere"),
    Provider(
        "proxmox", "Proxmox", r"proxmox://(?P<region>[^/]*)/(?P<instance>\d+)",
        "sergelogvinov/proxmox-cloud-controller-manager",
    ),
    Provider("libvirt", "libvirt", r"libvirt://[^/]*/(?P<instance>[^/]+)", "openshift/cluster-api-provider-libvirt"),
)  # fmt: skip


def provider_of(provider_id: str) -> Provider | None:
    """The provider whose form the ID has; a cloud that is not in the table has none."""
    return next((each for each in PROVIDERS if re.fullmatch(each.pattern, provider_id)), None)


@dataclass(frozen=True, slots=True)
class Login:
    """The default ``user`` of an image. ``anywhere``: not only on machines of a known cloud."""

    image: str
    user: str
    anywhere: bool = False


@dataclass(frozen=True, slots=True)
class Access:
    """``transport`` is "" where no command can be run on a node; ``reason`` of it or of ``user``, for people.

    ``user`` is "" where nothing shows which one there is. ``is_machine``: false for a Node that stands for a service.
    ``is_container``: true for a node of kind, whatever its transport is. ``engine``: docker, podman or "" if unknown.
    """

    transport: Transport
    user: str = ""
    reason: str = ""
    engine: str = ""
    is_machine: bool = True
    is_container: bool = False


# By the OS image. docs.aws.amazon.com/AWSEC2 (default user names of AMIs), and the documentation of cloud images.
LOGINS = (
    Login(r"^Amazon Linux", "ec2-user", anywhere=True),
    Login(r"CoreOS", "core", anywhere=True),
    Login(r"^Flatcar", "core", anywhere=True),
    Login(r"^Ubuntu", "ubuntu"),
    Login(r"^Debian", "debian"),
    Login(r"^Fedora", "fedora"),
    Login(r"^Rocky", "rocky"),
    Login(r"^AlmaLinux", "almalinux"),
    Login(r"^Red Hat Enterprise Linux", "cloud-user"),
)
# Where a login over SSH is the exception: why.
_BY_POD = {
    EKS: "EKS: managed node groups admit SSH only where it was configured",
    GKE: "GKE: logins need OS Login or keys in the project's metadata",
    AKS: "AKS: nodes have no public address, and new ones may have SSH disabled",
    OPENSHIFT: "OpenShift: Red Hat advises against SSH to nodes (oc debug node makes such a pod)",
}
_ON_AWS = {"debian": "admin", "cloud-user": "ec2-user", "almalinux": "ec2-user"}
_KIND_ENGINE = re.compile(r"^kind://(docker|podman)/")
# To a node of kind, by the choice: transport, login and reason.
_TO_CONTAINERS: Mapping[LinuxTransport | None, tuple[Transport, str, str]] = {
    None: ("docker", "", "a node of kind is a container"),
    "pod": ("pod", "", "as chosen"),
    "ssh": ("ssh", "root", "the only login of a kind node; stock images have no sshd"),
    "openssh": ("openssh", "root", "the only login of a kind node; stock images have no sshd"),
}


def access_of(node: ListedNode, chosen: LinuxTransport | None = None) -> Access:
    """How nodefall can run commands on the machine of a Node. ``chosen`` replaces the proposed transport to Linux.

    A pod needs a shell on the host, as SSH does: commands are run there by nsenter, with the host's programs.
    """
    if without := _without_machine(node) or _without_shell(node):
        return without
    if node.system == "windows":
        return Access("winrm", "Administrator", "the built-in administrator of Windows")
    if distribution_of_node(node).name == KIND:
        return _of_container(node, chosen)
    if chosen == "openssh":
        return Access("openssh", reason="its configuration has the login")
    why = "as chosen" if chosen else _BY_POD.get(distribution_of_node(node).name, "")
    return Access("pod", reason=why) if chosen == "pod" or (why and not chosen) else _ssh(node)


def _of_container(node: ListedNode, chosen: LinuxTransport | None) -> Access:
    found = _KIND_ENGINE.match(node.provider_id)
    transport, user, reason = _TO_CONTAINERS[chosen]
    return Access(transport, user, reason, found[1] if found else "", is_container=True)


def _without_machine(node: ListedNode) -> Access | None:
    if node.labels.get("eks.amazonaws.com/compute-type") == "fargate":
        return Access("", reason="Fargate: there is no machine to take down", is_machine=False)
    if (
        node.labels.get("type") == "virtual-kubelet"
    ):  # virtual-kubelet: cmd/virtual-kubelet/internal/commands/root/node.go
        return Access("", reason="virtual kubelet: there is no machine to take down", is_machine=False)
    return None


def _without_shell(node: ListedNode) -> Access | None:
    if node.info.os_image.startswith("Talos "):
        return Access("", reason="Talos Linux has neither SSH nor a shell")
    if node.info.os_image.startswith("Bottlerocket"):
        return Access("", reason="Bottlerocket has no SSH server and no shell on the host")
    return None


def _ssh(node: ListedNode) -> Access:
    distribution = distribution_of_node(node).name
    if distribution == AKS:
        return Access("ssh", "azureuser", "the default of az aks create --admin-username")
    if distribution == GKE:
        return Access("ssh", "", "OS Login or the metadata of the project give the login: gcloud compute ssh")
    image = node.info.os_image
    login = next((each for each in LOGINS if re.search(each.image, image)), None)
    if login is None or not (login.anywhere or provider_of(node.provider_id)):
        return Access("ssh", "", "nothing in the cluster shows the login; the local user name is used")
    on_aws = node.provider_id.startswith("aws://")
    user = _ON_AWS.get(login.user, login.user) if on_aws else login.user
    return Access("ssh", user, f"the default login of images of {login.image.strip('^')}")
