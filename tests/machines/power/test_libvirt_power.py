"""Domains of libvirt: its test driver, and a real daemon with a QEMU domain where one runs (NODEFALL_LIBVIRT_URI)."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import uuid4

import pytest

from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.identity import HostIdentity, NodeIdentity, is_uuid
from chaos.core.ports import MachineIdentity, MachineRisks
from chaos.core.power_identity import bind_power
from chaos.machines.driver import power_control_of
from chaos.machines.power.libvirt import LibvirtControl
from tests.kit.bmcs import within
from tests.kit.clouds import host_context

UUID = "11111111-2222-4333-8444-555555555555"
OTHER = "99999999-2222-4333-8444-555555555555"
DAEMON = os.environ.get("NODEFALL_LIBVIRT_URI", "")
DOMAIN = (
    "<domain type='{type}'><name>{name}</name><uuid>{uuid}</uuid><memory unit='MiB'>64</memory><vcpu>1</vcpu>"
    "<os><type arch='x86_64'>hvm</type></os><on_poweroff>{off}</on_poweroff></domain>"
)


@pytest.fixture
def driver(tmp_path: Path) -> Any:
    """The test driver with the domains n1 and n2, which are on. It forgets each connection's changes."""
    libvirt = pytest.importorskip("libvirt", reason="libvirt-python is not installed (it has no binary wheel)")
    text = "<node>" + DOMAIN.format(type="test", name="n1", uuid=UUID, off="destroy")
    text += DOMAIN.format(type="test", name="n2", uuid=OTHER, off="restart") + "</node>"
    (tmp_path / "node.xml").write_text(text)
    connection = libvirt.open(f"test://{tmp_path}/node.xml")
    # One connection for all, as each one of the test driver is a cluster that is made for it.
    lasting = SimpleNamespace(
        lookupByName=connection.lookupByName, lookupByUUIDString=connection.lookupByUUIDString, close=lambda: None
    )
    yield SimpleNamespace(open=lambda _: lasting, libvirtError=libvirt.libvirtError, connection=connection)
    connection.close()


def control(driver: Any, name: str = "n1") -> LibvirtControl:
    return LibvirtControl(driver, "test:///node.xml", name)


def test_the_state_follows_on_and_off(driver: Any) -> None:
    n1 = control(driver)
    assert n1.state() == "on"
    for verb in (n1.off, n1.off, n1.on, n1.on, n1.off):  # each twice: no harm
        verb()
        assert n1.state() == ("on" if verb == n1.on else "off")
    assert control(driver, "n2").state() == "on"


def test_a_paused_domain_is_on_and_is_resumed(driver: Any) -> None:
    driver.connection.lookupByName("n1").suspend()
    n1 = control(driver)
    assert n1.state() == "on"
    n1.on()
    assert driver.connection.lookupByName("n1").state()[0] == 1


def test_soft_off_presses_the_power_button(driver: Any) -> None:
    driver.VIR_DOMAIN_SHUTDOWN_ACPI_POWER_BTN = 1  # virDomainShutdownFlagValues
    n1 = control(driver)
    n1.soft_off()
    assert n1.state() == "off"  # the test driver's guest goes down at once


@pytest.mark.parametrize("name", ["n1", UUID])
def test_it_is_bound_by_its_uuid_and_not_to_another(driver: Any, name: str) -> None:
    n1 = control(driver, name)
    assert isinstance(n1, MachineIdentity)
    assert isinstance(n1, MachineRisks)
    assert n1.identity().key == UUID
    node, other = NodeIdentity("n1", "m", UUID.upper()), NodeIdentity("n1", "m", OTHER)
    assert bind_power(node, HostIdentity(), n1.identity(), {"n1": node}).is_bound
    assert bind_power(other, HostIdentity(), n1.identity(), {"n1": other}).contradictions


def test_definitions_that_do_not_stay_off(driver: Any) -> None:
    assert control(driver).risks() == ()
    assert [risk.message for risk in control(driver, "n2").risks()] == [
        "libvirt does not leave it off after a power-off: on_poweroff is restart"
    ]
    driver.connection.createXML(DOMAIN.format(type="test", name="n3", uuid=UUID[::-1], off="destroy"))
    assert [risk.message for risk in control(driver, "n3").risks()] == [
        "it is a transient domain, which is gone once it is off"
    ]


@pytest.mark.parametrize("name", ["absent", "00000000-0000-4000-8000-000000000000"])
def test_a_domain_that_is_not_found(driver: Any, name: str) -> None:
    for verb in ("on", "off", "state", "identity", "risks"):
        with pytest.raises(Refused, match=f"domain {name} of libvirt at test:///node.xml is not found"):
            getattr(control(driver, name), verb)()


class FakeError(Exception):
    """As libvirtError."""


def fake(number: int = 1, *, fails: bool = False) -> Any:
    """A libvirt with one domain in this state, whose changes fail."""

    def fail() -> None:
        raise FakeError("monitor closed")

    domain = SimpleNamespace(state=lambda: (number, 0), destroy=fail, create=fail)

    def connect(uri: str) -> Any:
        if fails:
            raise FakeError("no route to host")
        return SimpleNamespace(lookupByName=lambda _: domain, close=lambda: None)

    return SimpleNamespace(open=connect, libvirtError=FakeError)


@pytest.mark.parametrize(
    ("number", "state"), [(1, "on"), (2, "on"), (3, "on"), (4, "on"), (5, "off"), (6, "off"), (7, "on")]
)
def test_states(number: int, state: str) -> None:
    assert control(fake(number)).state() == state


def test_errors() -> None:
    with pytest.raises(NodefallError, match="has no power state: virDomainState 0"):
        control(fake(0)).state()
    with pytest.raises(Unreachable, match=r"libvirt at test:///node\.xml cannot be reached: no route to host"):
        control(fake(fails=True)).off()
    with pytest.raises(NodefallError, match="destroying it failed: monitor closed") as caught:
        control(fake()).off()
    assert not isinstance(caught.value, Refused | Unreachable)  # it may have been carried out


def test_without_the_extra_it_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "libvirt", None)
    with pytest.raises(Refused, match=r"^power control libvirt cannot be used: libvirt is not installed$") as caught:
        power_control_of(host_context({"kind": "libvirt"}))
    assert caught.value.hint == "run pip install 'nodefall[libvirt]'"


@contextmanager
def real_domain() -> Iterator[LibvirtControl]:
    libvirt = pytest.importorskip("libvirt")
    connection = libvirt.open(DAEMON)
    name = f"nodefall-{os.getpid()}"
    domain = connection.defineXML(DOMAIN.format(type="qemu", name=name, uuid=uuid4(), off="destroy"))
    try:
        made = power_control_of(host_context({"kind": "libvirt", "uri": DAEMON, "domain": name}))
        assert isinstance(made, LibvirtControl)
        yield made
    finally:
        if domain.isActive():
            domain.destroy()
        domain.undefine()
        connection.close()


@pytest.mark.skipif(not DAEMON, reason="no libvirt daemon: NODEFALL_LIBVIRT_URI is not set")
def test_a_real_qemu_domain() -> None:
    with real_domain() as domain:
        assert is_uuid(domain.identity().system_uuid)
        assert domain.risks() == ()
        assert domain.state() == "off"
        for verb, state in (
            (domain.on, "on"),
            (domain.on, "on"),
            (domain.off, "off"),
            (domain.off, "off"),
            (domain.on, "on"),
        ):
            verb()
            within(20, lambda state=state: domain.state() == state, f"the domain to be {state}")  # type: ignore[misc]
