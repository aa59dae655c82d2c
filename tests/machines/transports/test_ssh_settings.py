""""""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from chaos.core.command import Delivery, HostCommand, Outcome
from chaos.core.errors import Unreachable, UsageError
from chaos.core.inventory import Inventory
from chaos.core.ports import Armed
from chaos.core.threads import SYSTEM_THREADS
from chaos.machines.sessions.arming import RetryingSession
from chaos.machines.sessions.settings import HostSettings, LocalUser, host_settings

LOCAL = LocalUser("me", Path("/home/me"), Path("/inv"))
TRUE = HostCommand(("true",))


def inventory(hosts: dict[str, Any], **defaults: Any) -> Inventory:
    return Inventory.model_validate(
        {
            "apiVersion": "nodefall.dev/v1alpha1",
            "kind": "Inventory",
            "metadata": {"name": "x"},
            "cluster": {"kubeconfig": "k"},
            "defaults": defaults,
            "hosts": hosts,
        }
    )


def test_defaults_of_this_machine() -> None:
    assert host_settings(inventory({}), "n1", LOCAL, "10.0.0.1") == HostSettings(
        name="n1", address="10.0.0.1", user="me", known_hosts=Path("/home/me/.ssh/known_hosts"), port=22,
        sudo=True, identity_file=None, agent=True, jumps=(), connect_timeout=10.0, follows_node=True,
    )  # fmt: skip


def test_merge() -> None:
    found = host_settings(
        inventory(
            {"w": {"address": "w.example", "port": 2222, "agent": False, "identityFile": "/abs/key"}},
            user="chaos", sudo=False, identityFile="~/.ssh/chaos", knownHosts="known", connectTimeout="1m30s", port=22,
        ),
        "w", LOCAL, "10.9.9.9",
    )  # fmt: skip
    assert (found.address, found.port, found.user, found.sudo, found.agent) == (
        "w.example",
        2222,
        "chaos",
        False,
        False,
    )
    assert (found.identity_file, found.known_hosts) == (Path("/abs/key"), Path("/inv/known"))
    assert found.connect_timeout == 90.0


def test_hops() -> None:
    found = host_settings(
        inventory(
            {"bastion": {"address": "b.example", "user": "jump", "port": 2200}, "w": {"address": "10.0.0.1"}},
            user="chaos", proxyJump=["bastion", "ops@[fd00::7]:2022", "plain"],
        ),
        "w", LOCAL,
    )  # fmt: skip
    assert [(h.user, h.address, h.port, h.jumps) for h in found.jumps] == [
        ("jump", "b.example", 2200, ()),
        ("ops", "fd00::7", 2022, ()),
        ("chaos", "plain", 22, ()),
    ]


@pytest.mark.parametrize(
    ("key", "own", "expected"),
    [("w", None, ["b1", "b2"]), ("w", [], []), ("w", ["b2"], ["b2"]), ("b1", None, []), ("b2", None, ["b1"])],
)
def test_a_hop_is_not_reached_through_itself(key: str, own: list[str] | None, expected: list[str]) -> None:
    hosts: dict[str, Any] = {"w": {}, "b1": {}, "b2": {}}
    hosts[key] = {"proxyJump": own}
    found = host_settings(inventory(hosts, proxyJump=["b1", "b2"]), key, LOCAL)
    assert [h.name for h in found.jumps] == expected


@pytest.mark.parametrize("hop", ["", "a b", "user@", "h:99999", "h:0", "h:x", "fd00::7", "[fd00::7", "u@v@w"])
def test_bad_hops(hop: str) -> None:
    with pytest.raises(UsageError, match="proxyJump"):
        host_settings(inventory({"w": {"proxyJump": [hop]}}), "w", LOCAL)


@pytest.mark.parametrize(
    ("user", "sudo", "expected"),
    [("chaos", True, ("sudo", "-n", "--")), ("chaos", False, ()), ("root", True, ()), ("root", False, ())],
)
def test_sudo_prefix(user: str, sudo: bool, expected: tuple[str, ...]) -> None:
    assert HostSettings("w", "10.0.0.1", user, Path("k"), sudo=sudo).sudo_prefix == expected


@pytest.mark.parametrize(("address", "label"), [("10.0.0.1", "w (u@10.0.0.1:22)"), ("fd00::7", "w (u@[fd00::7]:22)")])
def test_label(address: str, label: str) -> None:
    assert HostSettings("w", address, "u", Path("k")).label == label


class Scripted:
    """A session with scripted outcomes that counts calls; also a clock that permits ``awake`` sleeps."""

    threads = SYSTEM_THREADS

    def __init__(self, *deliveries: Delivery, awake: int = 99) -> None:
        self.deliveries, self.calls, self.awake = list(deliveries), 0, awake

    def run(self, command: HostCommand) -> Outcome:
        self.calls += 1
        return Outcome(self.deliveries.pop(0))

    def arm(self, command: HostCommand) -> Armed:
        if self.run(command).delivery == Delivery.NOT_SENT:
            raise Unreachable("no")
        return Ready()

    def close(self) -> None: ...

    def now(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> bool:
        self.awake -= 1
        return self.awake >= 0

    def gather(self) -> None: ...

    def settle(self) -> bool:
        return False

    def wake(self) -> None: ...

    def resume(self) -> None: ...


class Ready:
    def calibrate(self, now: Callable[[], float]) -> bool:
        return False

    def release(self, at: float | None = None) -> None: ...

    def wait(self) -> Outcome:
        return Outcome(Delivery.ANSWERED, 0)

    def cancel(self) -> None: ...


@pytest.mark.parametrize(
    ("deliveries", "awake", "calls", "final"),
    [
        ((Delivery.ANSWERED,), 9, 1, Delivery.ANSWERED),
        ((Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.ANSWERED), 9, 3, Delivery.ANSWERED),
        ((Delivery.NOT_SENT, Delivery.LOST, Delivery.ANSWERED), 9, 2, Delivery.LOST),
        ((Delivery.LOST, Delivery.ANSWERED), 9, 1, Delivery.LOST),
        ((Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.ANSWERED), 9, 3, Delivery.NOT_SENT),
        ((Delivery.NOT_SENT, Delivery.ANSWERED), 0, 1, Delivery.NOT_SENT),
    ],
)
def test_only_unsent_commands_are_retried(deliveries: tuple[Delivery, ...], awake: int, calls: int, final: str) -> None:
    fake = Scripted(*deliveries, awake=awake)
    assert RetryingSession(fake, fake).run(TRUE).delivery == final
    assert fake.calls == calls


def test_arming_is_retried() -> None:
    fake = Scripted(Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.ANSWERED)
    assert RetryingSession(fake, fake).arm(TRUE).wait().delivery == Delivery.ANSWERED
    never = Scripted(Delivery.NOT_SENT, Delivery.NOT_SENT, Delivery.NOT_SENT)
    with pytest.raises(Unreachable):
        RetryingSession(never, never).arm(TRUE)
