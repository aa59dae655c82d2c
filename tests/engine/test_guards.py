"""Checks right before an operation: identity of the machine, limits of the inventory."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

import chaos.faults.actions
import chaos.faults.readings
import chaos.verdicts.assertions
from chaos.core.action import Action, FactCheck, Undo, UndoStep
from chaos.core.command import HostCommand, Outcome, PowerCommand, PowerVerb
from chaos.core.errors import Aborted, AnotherMachine, Refused
from chaos.core.experiment import Experiment
from chaos.core.fact import HostFact
from chaos.core.plan import Plan, PlannedStep
from chaos.core.ports import Response
from chaos.core.power_identity import PowerIdentity
from chaos.core.registry import PluginRegistry, discover
from chaos.core.result import UndoResult
from chaos.core.store.journal import Journal, read_pending
from chaos.engine.connection import ClusterConnection
from chaos.engine.guards import InjectionLimits
from chaos.engine.load import LoadedExperiment
from chaos.engine.observations import BUDGETS
from chaos.engine.rollback import MISMATCH_SECONDS, PROOF_SECONDS, roll_back
from chaos.machines.pool import Hosts
from chaos.machines.sessions.host_keys import HostKeyPins
from tests.kit.fakes import FakeClock, FakeKube, FakePower, FakeProgress, FakeSession, answered
from tests.kit.preflightkit import inventory

FACTS = discover(chaos.faults.readings, HostFact)
MACHINE_ID = str(FACTS["machine-id"].command)
PREPARING = str(FACTS["preparing-for-shutdown"].command)
RESTART = HostCommand(("systemctl", "restart", "kubelet"))
READY = Response(200, b'{"status":{"conditions":[{"type":"Ready","status":"True"}]}}', {})
NODE_READY, SETTLED = FactCheck("node-ready", True), FactCheck("preparing-for-shutdown", "b false")
RIGHT, WRONG = "a" * 32, "b" * 32  # machine IDs
HOST = (FactCheck("machine-id", RIGHT),)
POWER = (FactCheck("power-identity", "uuid-1"),)
ON = UndoStep(PowerCommand(PowerVerb.ON), unless=FactCheck("machine", "on"))


class Bmc(FakePower):
    """Switches the machine with ``uuid``."""

    def __init__(self, uuid: str) -> None:
        super().__init__("off")
        self.uuid = uuid

    def identity(self) -> PowerIdentity:
        return PowerIdentity(self.uuid)


class World:
    """One node whose host has ``machine_id``; None: the host does not answer."""

    def __init__(self, folder: Path, machine_id: str | None = RIGHT, uuid: str = "uuid-1") -> None:
        self.machine_id, self.power = machine_id, Bmc(uuid)
        answers: dict[str, Outcome | Callable[[], Outcome]] = {
            str(RESTART): answered(),
            PREPARING: answered("b false\n"),
            MACHINE_ID: lambda: answered(
                f"{self.machine_id}\n" if self.machine_id else "", 0 if self.machine_id else 1
            ),
        }
        self.session, self.clock, self.folder = FakeSession(answers), FakeClock(), folder
        self.kube = FakeKube({"/api/v1/nodes/n1": READY})
        self.hosts = Hosts(lambda _: self.session, lambda _: self.power, self.kube, FACTS, self.clock)

    def undo(self, undo: Undo, identity: tuple[FactCheck, ...]) -> UndoResult:
        with Journal(self.folder) as journal:
            journal.record_intent("step", "act", "n1", undo, self.clock.now(), identity)
        with Journal(self.folder) as journal:  # the checks come from the disk
            (result,) = roll_back(journal, self.hosts, self.clock, FakeProgress())
        return result

    @property
    def sent(self) -> bool:
        return str(RESTART) in self.session.sent


@pytest.mark.parametrize(
    ("machine_id", "identity", "sent", "because"),
    [
        (RIGHT, HOST, True, "the node is Ready"),
        (
            WRONG,
            HOST,
            False,
            f"n1 is another machine now: expected machine-id is {RIGHT}, but machine-id is {WRONG}",
        ),
        (None, HOST, False, "cannot verify the identity of n1: machine-id of n1:"),
        (WRONG, (), True, "the node is Ready"),  # a journal of 0.1.0
    ],
)
def test_a_command_to_the_host(
    tmp_path: Path, machine_id: str | None, identity: tuple[FactCheck, ...], sent: bool, because: str
) -> None:
    world = World(tmp_path, machine_id)
    result = world.undo(Undo((UndoStep(RESTART),), (NODE_READY,)), identity)
    assert (world.sent, result.proven) == (sent, sent)
    assert because in result.because
    assert bool(read_pending(tmp_path)) != sent


@pytest.mark.parametrize(("uuid", "state"), [("uuid-1", "on"), ("uuid-2", "off")])
def test_a_command_to_the_power_control(tmp_path: Path, uuid: str, state: str) -> None:
    world = World(tmp_path, machine_id=WRONG, uuid=uuid)  # the host is not used
    result = world.undo(Undo((ON,), (FactCheck("machine", "on"), NODE_READY)), (*HOST, *POWER))
    assert world.power.value == state
    assert result.proven == (state == "on")
    assert ("expected power-identity is uuid-1, but power-identity is" in result.because) == (state == "off")


@pytest.mark.parametrize(("machine_id", "proven"), [(RIGHT, True), (WRONG, False)])
def test_a_proof_that_was_read_on_another_machine_does_not_count(tmp_path: Path, machine_id: str, proven: bool) -> None:
    world = World(tmp_path, machine_id)
    assert world.undo(Undo((), (SETTLED,)), HOST).proven is proven


def test_a_power_state_of_another_machine_does_not_count(tmp_path: Path) -> None:
    world = World(tmp_path, uuid="uuid-2")
    world.power.value = "on"
    assert not world.undo(Undo((ON,), (FactCheck("machine", "on"),)), POWER).proven


def test_an_address_that_comes_back_is_used_then(tmp_path: Path) -> None:
    """While a machine is off, another one may have its address."""
    world = World(tmp_path, WRONG)
    back = world.clock.now() + MISMATCH_SECONDS * 0.9
    world.clock.agenda.append((back, lambda: setattr(world, "machine_id", RIGHT)))
    assert world.undo(Undo((UndoStep(RESTART),), (NODE_READY,)), HOST).proven
    assert world.session.sent.index(str(RESTART)) > 2


@pytest.mark.parametrize(
    "undo", [Undo((UndoStep(RESTART),), (NODE_READY,)), Undo((), (SETTLED,)), Undo((), (FactCheck("node-name", "n2"),))]
)
def test_another_machine_ends_the_wait_and_what_settles_it_is_said(tmp_path: Path, undo: Undo) -> None:
    """Whether its identity hinders a command, the proof, or nothing yet."""
    world = World(tmp_path, WRONG)
    begin = world.clock.now()
    result = world.undo(undo, HOST)
    assert MISMATCH_SECONDS <= world.clock.now() - begin < PROOF_SECONDS / 2
    assert f"expected machine-id is {RIGHT}, but machine-id is {WRONG}" in result.because
    assert result.because.endswith(f"run nodefall undo {tmp_path} --accept-machine n1")


def test_a_machine_that_does_not_respond_is_no_other_machine(tmp_path: Path) -> None:
    world = World(tmp_path, None)
    begin = world.clock.now()
    result = world.undo(Undo((UndoStep(RESTART),), (NODE_READY,)), HOST)
    assert world.clock.now() - begin >= PROOF_SECONDS
    assert "--accept-machine" not in result.because


@pytest.mark.parametrize(
    ("error", "is_another"),
    [(AnotherMachine("another key"), True), (Refused("no room for a helper pod", hint="make room"), False)],
)
def test_only_another_identity_ends_the_wait(tmp_path: Path, error: Refused, is_another: bool) -> None:
    world = World(tmp_path)

    def refuse(_: str) -> FakeSession:
        raise error

    world.hosts = Hosts(refuse, lambda _: None, world.kube, FACTS, world.clock)
    begin = world.clock.now()
    result = world.undo(Undo((UndoStep(RESTART),), (NODE_READY,)), (FactCheck("host-key", "a"),))
    assert (world.clock.now() - begin < PROOF_SECONDS) == ("--accept-machine" in result.because) == is_another
    assert error.message in result.because
    assert error.hint in result.because


def test_two_short_moments_of_another_machine_are_not_a_long_one(tmp_path: Path) -> None:
    world = World(tmp_path, WRONG)
    start = world.clock.now()
    for seconds, machine in ((40.0, RIGHT), (50.0, WRONG), (90.0, RIGHT)):
        world.clock.agenda.append((start + seconds, partial(setattr, world, "machine_id", machine)))
    late = Undo((UndoStep(RESTART, grace_seconds=95.0),), (SETTLED,))
    assert world.undo(late, HOST).proven


KEY, OTHER_KEY = "ssh-ed25519 SHA256:a", "ssh-ed25519 SHA256:b"


@pytest.mark.parametrize(
    ("presented", "because"), [(KEY, "the node is Ready"), (OTHER_KEY, "n1 (a@b:22) now leads to a different machine")]
)
def test_the_journal_pins_the_host_key_before_the_first_connection(
    tmp_path: Path, presented: str, because: str
) -> None:
    """Not even a fact is read on a host that presents another key."""
    world, pins = World(tmp_path), HostKeyPins()

    def connect(node: str) -> FakeSession:
        pins.of(node).verify(presented, f"{node} (a@b:22)")
        return world.session

    world.hosts = Hosts(connect, lambda _: None, world.kube, FACTS, world.clock, pins)
    step = UndoStep(RESTART, unless=SETTLED)
    result = world.undo(Undo((step, UndoStep(RESTART)), (NODE_READY,)), (FactCheck("host-key", KEY), *HOST))
    assert because in result.because
    assert world.sent is result.proven is (presented == KEY)
    assert bool(world.session.sent) is result.proven
    assert world.hosts.check("n1", FactCheck("host-key", KEY))[0] is result.proven


def test_a_transport_without_keys_reports_none(tmp_path: Path) -> None:
    holds, why = World(tmp_path).hosts.check("n1", FactCheck("host-key", KEY))
    assert not holds
    assert "host-key of n1: its transport does not report one" in why


REGISTRY = PluginRegistry(discover(chaos.faults.actions, Action), discover(chaos.verdicts.assertions, "ASSERTION"))
ROLE = "node-role.kubernetes.io"
PLANE, ETCD = {f"{ROLE}/control-plane": ""}, {f"{ROLE}/etcd": "true"}
OTHERS = {"c": PLANE, "w1": {}, "w2": {}}


def step(node: str, action: str = "kubelet-stop") -> PlannedStep:
    return PlannedStep("do" if action == "kubelet-stop" else action, action, node, {}, {}, (), Undo(), ())


def experiment(steps: tuple[PlannedStep, ...]) -> Experiment:
    ready = {"assert": "nodes-ready"}
    method = [{"name": name, "action": action} for name, action in dict.fromkeys((s.step, s.action) for s in steps)]
    spec = {"title": "t", "steadyState": [ready], "hypothesis": [ready], "method": method}
    head = {"apiVersion": "nodefall.dev/v1alpha1", "kind": "Experiment", "metadata": {"name": "x"}}
    return REGISTRY.bind(Experiment.model_validate(head | {"spec": spec}))


def listed(*items: dict[str, Any]) -> Response:
    return Response(200, json.dumps({"items": items}).encode(), {})


def node(name: str, labels: dict[str, str], ready: bool) -> dict[str, Any]:
    conditions = [{"type": "Ready", "status": str(ready)}]
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {"conditions": conditions}}


def pod(name: str, on: str) -> dict[str, Any]:
    status = {"conditions": [{"type": "Ready", "status": "True"}]}
    return {
        "metadata": {"name": name, "namespace": "default", "labels": {"app": "web"}},
        "spec": {"nodeName": on},
        "status": status,
    }


def budget(allowed: int) -> dict[str, Any]:
    spec = {"selector": {"matchLabels": {"app": "web"}}}
    return {"metadata": {"name": "b", "namespace": "default"}, "spec": spec, "status": {"disruptionsAllowed": allowed}}


def limits_of(
    nodes: dict[str, dict[str, str]],
    ill: str = "",
    steps: tuple[PlannedStep, ...] = (step("w1"),),
    allowed: int = 1,
    overridden: tuple[str, ...] = (),
    namespace: str = "",
    **limits: Any,
) -> InjectionLimits:
    kube = FakeKube(
        {
            "/api/v1/nodes": listed(*(node(name, labels, name not in ill.split()) for name, labels in nodes.items())),
            "/api/v1/pods": listed(pod("web-1", "w1")),
            BUDGETS: listed(budget(allowed)),
        }
    )
    connection = cast("ClusterConnection", SimpleNamespace(kube=kube, inventory=inventory(limits=limits)))
    plan = Plan("r", "x", "", "uid", 0.0, 0, (), steps, namespace, overridden=overridden)
    loaded = cast("LoadedExperiment", SimpleNamespace(experiment=experiment(steps)))
    return InjectionLimits(loaded, plan, connection)


REFUSED = [
    (limits_of(OTHERS, ill="w2"), "too few Ready workers: 0 would stay Ready"),
    (limits_of(OTHERS, minReadyNodes=2), "limits.minReadyNodes is 2"),
    (limits_of(OTHERS, ill="c w2", minReadyNodes=0), "none would stay Ready"),
    (limits_of(OTHERS, steps=(step("w1"), step("w2"))), "0 would stay Ready"),  # of all steps together
    (limits_of(OTHERS, allowed=0), "budgets: w1: budget default/b allows 0"),
    (limits_of({"w1": ETCD, "e2": ETCD, "e3": ETCD, "w2": {}}, ill="e2"), "quorum: without w1 only 1 of 3"),
]


@pytest.mark.parametrize(("limits", "why"), REFUSED)
def test_a_step_that_would_exceed_a_limit_is_not_done(limits: InjectionLimits, why: str) -> None:
    with pytest.raises(Aborted, match=why) as caught:
        limits.check([step("w1")])
    assert caught.value.message.startswith("step do was not done: ")


@pytest.mark.parametrize(
    "limits",
    [
        limits_of(OTHERS),
        limits_of(OTHERS, allowed=0, budgets="ignore"),
        limits_of(OTHERS, allowed=0, overridden=("budgets: w1: budget default/b allows 0",)),
        limits_of(OTHERS, allowed=0, namespace="default"),  # of the run's own workload
        limits_of({"w2": {}}, steps=(step("w1"),)),  # a step has deleted the Node
    ],
)
def test_a_step_within_the_limits_is_done(limits: InjectionLimits) -> None:
    limits.check([step("w1")])


@pytest.mark.parametrize("action", ["power-on", "kubelet-start", "uncordon"])
def test_a_repair_is_done_in_any_state(action: str) -> None:
    limits = limits_of(OTHERS, ill="w1 w2", steps=(step("w1", action), step("w1")))
    limits.check([step("w1", action)])


def test_without_an_answer_nothing_is_done() -> None:
    limits = limits_of(OTHERS)
    cast("FakeKube", limits.connection.kube).answers["/api/v1/nodes"] = Response(503, b"", {})
    with pytest.raises(Aborted, match="step do was not done: GET /api/v1/nodes"):
        limits.check([step("w1")])
