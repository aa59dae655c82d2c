"""A power control is bound to its Node by UUID, name or address, and never to another one.

Whether an address is a former one of a machine.
"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs

from chaos.core.identity import HostIdentity, NodeIdentity
from chaos.core.power_identity import PowerIdentity, bind_power, is_same_provider_id, moved_to

DIGITS = "0123456789abcdef"
BRIDGE = ("172.18.0.5/16", "fc00:f853::5/64")


def uuid_of(number: int) -> str:
    return f"{DIGITS[number] * 8}-1111-4111-8111-{DIGITS[number] * 12}"


def node(number: int, uuid: str | None = None) -> NodeIdentity:
    return NodeIdentity(
        f"n{number}", str(number) * 32, uuid_of(number) if uuid is None else uuid, addresses=(f"10.0.0.{number}",)
    )


NODES = {f"n{number}": node(number) for number in range(4)}


@pytest.mark.parametrize(
    ("identity", "key"),
    [
        (PowerIdentity(), ""),
        (PowerIdentity("AB-CD"), "ab-cd"),
        (PowerIdentity(names=("n1",), provider_id="gce://P/z/n1"), "gce://p/z/n1"),
        (PowerIdentity(container_id="17", provider_id="gce://p/z/n1"), "17"),  # recreated: another ID
        (PowerIdentity(names=("b", "a", "b"), addresses=("10.0.0.1",)), "a,b"),  # addresses change with a start
    ],
)
def test_the_key_is_what_does_not_change(identity: PowerIdentity, key: str) -> None:
    assert identity.key == key


def test_a_uuid_in_the_other_byte_order_is_the_same() -> None:
    node = NodeIdentity("n1", system_uuid="4c4c4544-0033-3310-8044-b7c04f443232")
    power = PowerIdentity("44454C4C-3300-1033-8044-B7C04F443232")
    assert bind_power(node, HostIdentity(), power, {"n1": node}).is_bound


def test_a_machine_whose_node_reports_no_uuid_is_compared_with_its_host() -> None:
    container = node(1, uuid="1" * 32)  # its machine ID
    nodes = NODES | {"n1": container}
    host = HostIdentity(system_uuid=uuid_of(9))
    assert bind_power(container, host, PowerIdentity(uuid_of(9)), nodes).is_bound
    assert bind_power(container, host, PowerIdentity(uuid_of(8)), nodes).contradictions
    unknown = bind_power(container, HostIdentity(), PowerIdentity(uuid_of(8)), nodes)
    assert (unknown.proofs, unknown.contradictions) == ((), ())
    assert bind_power(container, HostIdentity(), PowerIdentity(uuid_of(2)), nodes).contradictions


AWS, OTHER = "aws:///eu-west-1a/i-0abc", "aws:///eu-west-1a/i-0def"


def instance(number: int, provider_id: str) -> NodeIdentity:
    return structs.replace(node(number), provider_id=provider_id)


CLOUD = {"n1": instance(1, AWS), "n2": instance(2, OTHER), "n3": instance(3, "")}


@pytest.mark.parametrize(
    ("name", "power", "proofs", "contradiction"),
    [
        ("n1", PowerIdentity(provider_id=AWS), ("provider ID",), ""),
        (
            "n1",
            PowerIdentity(provider_id=OTHER),
            (),
            f"is {AWS}, but the power control is that of {OTHER} (that of n2)",
        ),
        ("n1", PowerIdentity(provider_id="aws:///eu-west-1a/i-9"), (), f"is {AWS}, but the power control is that of"),
        ("n1", PowerIdentity(provider_id="gce://p/eu-west-1a/i-0abc"), (), f"is {AWS}, but"),
        ("n3", PowerIdentity(provider_id=OTHER), (), f"the power control is that of {OTHER} (that of n2)"),
        ("n3", PowerIdentity(provider_id="aws:///z/i-9", names=("n3",), addresses=("10.0.0.3",)), (), ""),
        ("n3", PowerIdentity(provider_id="aws:///z/i-9", addresses=("10.9.9.9",)), (), "the Node has 10.0.0.3"),
        ("n1", PowerIdentity(provider_id=AWS, addresses=("10.9.9.9",)), ("provider ID",), "the Node has 10.0.0.1"),
        ("n1", PowerIdentity(uuid_of(2), provider_id=AWS), ("provider ID",), "the power control is that of 2222"),
    ],
)
def test_an_instance_is_bound_by_its_provider_id(
    name: str, power: PowerIdentity, proofs: tuple[str, ...], contradiction: str
) -> None:
    """Names and addresses prove nothing: another network of the cloud may have the same."""
    binding = bind_power(CLOUD[name], HostIdentity(), power, CLOUD)
    assert binding.proofs == proofs
    assert bool(binding.contradictions) == bool(contradiction)
    assert contradiction in "; ".join(binding.contradictions)


def test_a_provider_id_that_two_nodes_have_is_refused() -> None:
    nodes = CLOUD | {"n2": instance(2, AWS)}
    assert not bind_power(nodes["n1"], HostIdentity(), PowerIdentity(provider_id=AWS), nodes).is_bound


@pytest.mark.parametrize(("expected", "is_bound"), [(AWS, True), ("i-0abc", True), ("i-0def", False), ("0abc", False)])
def test_the_inventory_may_state_the_instance(expected: str, is_bound: bool) -> None:
    power = PowerIdentity(provider_id=AWS)
    assert bind_power(CLOUD["n3"], HostIdentity(), power, CLOUD, expected).is_bound is is_bound


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (AWS, AWS, True),
        ("azure:///subscriptions/S/resourceGroups/RG/x", "azure:///subscriptions/s/resourcegroups/rg/X", True),
        ("openstack:///u-1", "openstack://region/u-1", True),
        ("openstack://a/u-1", "openstack://b/u-1", False),
        ("aws:///eu-west-1a/i-1", "aws:///eu-west-1b/i-1", False),
        ("", "", False),
        ("aws://", "aws://", False),
        ("i-1", "i-1", False),
    ],
)
def test_provider_ids_of_the_same_machine(one: str, other: str, same: bool) -> None:
    assert is_same_provider_id(one, other) is same
    assert is_same_provider_id(other, one) is same


def test_a_uuid_that_two_nodes_share_proves_nothing() -> None:
    nodes = NODES | {"n2": node(2, uuid=uuid_of(1))}
    binding = bind_power(nodes["n1"], HostIdentity(), PowerIdentity(uuid_of(1)), nodes)
    assert (binding.proofs, binding.contradictions) == ((), ())


@pytest.mark.parametrize("uuid", ["0" * 32, "03000200-0400-0500-0006-000700080009", "Not Settable", "x" * 32, ""])
def test_values_that_vendors_fill_in_say_nothing(uuid: str) -> None:
    binding = bind_power(NODES["n1"], HostIdentity(), PowerIdentity(uuid), NODES)
    assert (binding.proofs, binding.contradictions) == ((), ())


NUMBERS = st.integers(0, 3)


@given(NUMBERS, NUMBERS, st.booleans(), st.booleans(), st.booleans())
def test_no_control_is_bound_to_another_node(
    own: int, switched: int, has_uuid: bool, has_name: bool, has_address: bool
) -> None:
    power = PowerIdentity(
        uuid_of(switched) if has_uuid else "",
        (f"n{switched}",) if has_name else (),
        (f"10.0.0.{switched}",) if has_address else (),
    )
    binding = bind_power(node(own), HostIdentity(), power, NODES)
    known = has_uuid or has_name or has_address
    assert binding.is_bound == (known and own == switched)
    assert bool(binding.contradictions) == (known and own != switched)


@pytest.mark.parametrize(
    ("what", "address", "interfaces", "new"),
    [
        ("the same", "172.18.0.5", BRIDGE, ""),
        ("a former one", "172.18.0.3", BRIDGE, "172.18.0.5"),
        ("a former one of IPv6", "fc00:f853::3", BRIDGE, "fc00:f853::5"),
        ("another spelling", "fc00:f853:0::0005", BRIDGE, ""),
        ("of a tunnel", "100.64.0.9", BRIDGE, ""),
        ("a forwarded port", "127.0.0.1", BRIDGE, ""),
        ("a name", "kind-worker", BRIDGE, ""),
        ("none in the inventory", "", BRIDGE, ""),
        ("a machine that is off", "172.18.0.3", (), ""),
        ("of the second network", "10.1.0.2", ("172.18.0.5/16", "10.1.0.7/24"), "10.1.0.7"),
        ("a network that is not known", "172.18.0.3", ("172.18.0.5",), ""),
    ],
)
def test_where_a_machine_is_now(what: str, address: str, interfaces: tuple[str, ...], new: str) -> None:
    assert moved_to(address, interfaces) == new, what
