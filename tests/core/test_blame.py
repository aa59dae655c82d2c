"""Each hook of each kind of plug-in is made to raise, to return another type and to hang: the plug-in is blamed."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec import Struct

import chaos.cluster.observers.plugin as observers
import chaos.engine.preflight.check as checks
import chaos.reports.run.renderer as renderers
from chaos.core import blame, plugin_kinds
from chaos.core.action import Action, Needs, Program, Proof, ProofResult, ProofStatus, Target, UndoKind
from chaos.core.assertion import Undecidable
from chaos.core.blame import Kind
from chaos.core.command import HostCommand, Outcome, PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import NodefallError, PluginError, Unsupported
from chaos.core.fact import host_fact
from chaos.core.field_types import Model
from chaos.core.outside import Origin
from chaos.core.signal import SubjectSet
from chaos.core.threads import ContextThread
from chaos.machines.driver import PowerDriver, TransportDriver

OWNER = "nodefall-acme 0.1.0"
ORIGIN = Origin("group", "acme", "acme:PLUGIN", "nodefall-acme", "0.1.0")
FOREVER = threading.Event()


class Params(Model):
    """None."""


class State(Struct, frozen=True):
    pass


PROGRAM = Program((HostCommand(("true",)),))


def _action(hook: str, do: Callable[..., Any]) -> Any:
    parts: dict[str, Any] = {
        "prepare": lambda *_: State(),
        "program": lambda _: PROGRAM,
        "needs": lambda _: Needs(),
        "check_order": lambda *_: None,
        "proofs": (Proof("done", do if hook == "proof done" else lambda *_: ProofResult(ProofStatus.PROVEN, "")),),
    }
    parts |= {hook: do} if hook in parts else {}
    return Action(
        name="acme", summary="", example="", params=Params, state=State, undo_kind=UndoKind.RESTORES, **parts
    )  # fmt: skip


def _object(base: type, **fixed: Any) -> Callable[[str, Callable[..., Any]], Any]:
    """Makes an instance of a subclass with a method, or property, that does something."""

    def make(hook: str, do: Callable[..., Any]) -> Any:
        return type("Acme", (base,), {"name": "acme", **fixed, hook: lambda _self, *args: do(*args)})()

    return make


class Assertion:
    summary = example = needs = ""
    params = Params
    node_fields = moment_fields = ()

    def subjects(self, *_: Any) -> SubjectSet:
        return SubjectSet("", ())


@dataclass
class Session:
    answer: Callable[[], Any]

    def run(self, _: Any) -> Any:
        return self.answer()


class Transport(TransportDriver):
    name = "acme"

    def open_session(self, host: Any) -> Any:
        return Session(host)


class Control:
    capabilities = frozenset({"on"})


def _control(hook: str, do: Callable[..., Any]) -> Any:
    if hook == "make":
        return PowerDriver("acme", PowerSettings, do)
    body: Any = property(lambda _: do()) if hook == "capabilities" else lambda _, *args: do(*args)
    return PowerDriver("acme", PowerSettings, lambda *_: type("Acme", (Control,), {hook: body})())


def _observer(hook: str, do: Callable[..., Any]) -> Any:
    if hook == "build":
        return Plugin(do)
    methods = {name: lambda _: True for name in ("start", "stop", "has_synced")}
    made = type("Observer", (), {"name": "acme", **methods, hook: lambda _, *args: do(*args)})()
    return Plugin(lambda _: [made])


@dataclass
class Plugin:
    """An observer plug-in."""

    do: Callable[..., Any]
    name: str = "acme"

    def build(self, context: Any) -> Any:
        return self.do(context)


def _fact(hook: str, do: Callable[..., Any]) -> Any:
    command: Any = (lambda _: do()) if hook == "command_for" else HostCommand(("true",))
    return host_fact("acme", "", command)(do if hook == "parse" else lambda *_: 1)


def _check(_: str, do: Callable[..., Any]) -> Any:
    return checks.check("acme", "")(do)


def _renderer(_: str, do: Callable[..., Any]) -> Any:
    return renderers.Renderer("acme", "acme.txt", "", do)


@dataclass(frozen=True)
class Case:
    """A hook: how a plug-in with it is made, how nodefall calls it, and what is of another type (None: anything is)."""

    kind: Kind
    make: Callable[[str, Callable[..., Any]], Any]
    hook: str
    call: Callable[[Any], Any]
    wrong: Any = 7
    can_hang: bool = True
    where: str = ""  # another hook is named

    def __str__(self) -> str:
        return f"{self.kind.name} {self.hook}"


def _of_control(hook: str, *args: Any) -> Callable[[Any], Any]:
    def call(driver: Any) -> Any:
        found = getattr(driver.make(None, None), hook)
        return found(*args) if callable(found) else found

    return call


def _of_observer(hook: str, *args: Any) -> Callable[[Any], Any]:
    return lambda plugin: getattr(plugin.build(None)[0], hook)(*args)


CASES = [
    Case(plugin_kinds.ACTION, _action, "prepare", lambda a: a.prepare(Target("n1"), Params())),
    Case(plugin_kinds.ACTION, _action, "program", lambda a: a.program(State())),
    Case(plugin_kinds.ACTION, _action, "needs", lambda a: a.needs_with(Params())),
    Case(plugin_kinds.ACTION, _action, "check_order", lambda a: a.check_order("x", {}, 0.0), wrong=None),
    Case(plugin_kinds.ACTION, _action, "proof done", lambda a: a.proofs[0].check(None, None)),
    Case(plugin_kinds.ASSERTION, _object(Assertion), "subjects", lambda a: a.subjects(None, None)),
    Case(plugin_kinds.ASSERTION, _object(Assertion), "claim", lambda a: a.claim(None, None)),
    Case(plugin_kinds.ASSERTION, _object(Assertion), "uses_controller_manager", lambda a: a.uses_controller_manager(0)),
    Case(plugin_kinds.FACT, _fact, "parse", lambda f: f.parse("", 0), wrong=None),
    Case(plugin_kinds.FACT, _fact, "command_for", lambda f: f.command_for({})),
    Case(checks.KIND, _check, "run", lambda c: list(c.run(None))),
    Case(renderers.KIND, _renderer, "render", lambda r: r.render(None, None)),
    Case(observers.KIND, _observer, "build", lambda p: p.build(None)),
    *(Case(observers.KIND, _observer, name, _of_observer(name)) for name in ("stop", "final_sample", "offsets")),
    Case(observers.KIND, _observer, "start", _of_observer("start", None)),
    Case(observers.KIND, _observer, "has_synced", _of_observer("has_synced")),
    Case(plugin_kinds.POWER, _control, "make", lambda d: d.make(None, None), wrong=None),
    *(
        Case(plugin_kinds.POWER, _control, name, _of_control(name))
        for name in ("capabilities", "state", "on", "off", "soft_off", "is_stopping", "restart_policy", "identity")
    ),
    *(Case(plugin_kinds.POWER, _control, name, _of_control(name)) for name in ("risks", "interfaces")),
    Case(plugin_kinds.POWER, _control, "set_restart_policy", _of_control("set_restart_policy", "no")),
    Case(
        plugin_kinds.TRANSPORT, _object(Transport), "open_session", lambda t: t.open_session(None), None, can_hang=False
    ),
    *(
        Case(plugin_kinds.TRANSPORT, _object(Transport), name, lambda t, name=name: getattr(t, name)(None))  # type: ignore[misc]
        for name in ("jump_hosts", "known_keys", "local_problems", "sudo_user")
    ),
]


class _Impatient(ContextThread):
    def join(self, timeout: float | None = None) -> None:
        super().join(0.05 if timeout else timeout)


def _blamed(case: Case, do: Callable[..., Any]) -> str:
    """Why the plug-in is to blame, as the error, a proof, a report or an undecided assertion says it."""
    plugin = case.kind.accept(case.make(case.hook, do), "acme", ORIGIN)
    try:
        result = case.call(plugin)
    except (PluginError, Undecidable) as error:
        return str(error)
    return result.because if isinstance(result, ProofResult) else str(result)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_an_exception_is_the_plugins(case: Case) -> None:
    def do(*_: Any) -> Any:
        raise ZeroDivisionError("division by zero")

    expected = f"{OWNER}, {case.kind.name} acme, in {case.hook}: ZeroDivisionError: division by zero"
    assert _blamed(case, do).strip() == expected


@pytest.mark.parametrize("case", [case for case in CASES if case.wrong is not None], ids=str)
def test_a_result_of_another_type_is_the_plugins(case: Case) -> None:
    text = _blamed(case, lambda *_: case.wrong)
    assert text.startswith(f"{OWNER}, {case.kind.name} acme, in {case.hook}: it returned a value of type int, not ")


@pytest.mark.parametrize("case", [case for case in CASES if case.can_hang], ids=str)
def test_a_hang_is_the_plugins(case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blame, "ContextThread", _Impatient)
    text = _blamed(case, lambda *_: FOREVER.wait(30))
    assert text.strip().startswith(f"{OWNER}, {case.kind.name} acme, in {case.hook}: it has not returned for ")


def test_every_hook_is_in_the_table() -> None:
    tables: list[Mapping[str, Any]] = [
        plugin_kinds._ASSERTION_HOOKS,
        plugin_kinds._CONTROL_HOOKS,
        plugin_kinds._TRANSPORT_HOOKS,
        observers._OBSERVER_HOOKS,
    ]
    assert {hook for table in tables for hook in table} <= {case.hook for case in CASES}


@pytest.mark.parametrize("error", [Unsupported("not here"), PluginError("inner")])
def test_what_a_hook_may_raise_is_not_blamed(error: NodefallError) -> None:
    def prepare(*_: Any) -> State:
        raise error

    action = plugin_kinds.ACTION.accept(_action("prepare", prepare), "acme", ORIGIN)
    with pytest.raises(type(error)) as raised:
        action.prepare(Target("n1"), Params())
    assert raised.value is error


def test_a_generator_of_a_check_is_blamed_where_it_raises() -> None:
    def run(_: Any) -> Any:
        yield checks.ok("fine")
        raise KeyError("x")

    check = checks.KIND.accept(_check("run", run), "acme", ORIGIN)
    with pytest.raises(PluginError, match=f"{OWNER}, check acme, in run: KeyError"):
        list(check.run(None))


def test_a_wrong_item_of_a_check_is_blamed() -> None:
    check = checks.KIND.accept(_check("run", lambda _: [7]), "acme", ORIGIN)
    with pytest.raises(PluginError, match="a value of type int among its results, not Diagnosis"):
        check.run(None)


def test_a_fact_with_parameters_is_parsed_by_its_own() -> None:
    """The copy that has the parameters is blamed, too."""

    class Unit(Model):
        unit: str

    def parse(_out: str, _code: int, given: Unit) -> Any:
        if given.unit == "bad":
            raise ZeroDivisionError
        return given.unit

    declared = host_fact("acme", "", lambda _known, _params: HostCommand(("true",)), params=Unit)(parse)
    fact = plugin_kinds.FACT.accept(declared, "acme", ORIGIN)
    assert fact.bind({"unit": "a"}).parse("", 0) == "a"
    with pytest.raises(PluginError, match="in parse"):
        fact.bind({"unit": "bad"}).parse("", 0)
    with pytest.raises(ValueError, match="unit"):
        fact.bind({})


def test_the_session_of_a_transport_is_blamed() -> None:
    transport = plugin_kinds.TRANSPORT.accept(Transport(), "acme", ORIGIN)
    assert transport.open_session(lambda: Outcome("answered")).run(None).delivery == "answered"  # type: ignore[arg-type]
    with pytest.raises(PluginError, match="transport acme, in run: it returned a value of type int, not Outcome"):
        transport.open_session(lambda: 7).run(None)


def test_of_a_control_that_works_nothing_changes() -> None:
    driver = plugin_kinds.POWER.accept(_control("state", lambda: PowerState.ON), "acme", ORIGIN)
    control = driver.make(None, None)
    assert (control.state(), control.capabilities) == (PowerState.ON, {"on"})
    assert not isinstance(control, observers.OffsetSource)
    assert replace(driver, name="other").make(None, None).state() is PowerState.ON


@pytest.mark.parametrize(
    ("kind", "plugin", "why"),
    [
        (plugin_kinds.ACTION, SimpleNamespace(name="acme"), "not an instance of Action"),
        (plugin_kinds.ACTION, Action, "not an instance of Action"),
        (plugin_kinds.ASSERTION, SimpleNamespace(name="acme"), "has no summary and no example"),
        (plugin_kinds.ASSERTION, type("Plain", (Assertion,), {"name": "acme"}), "is not an instance of a class"),
        (renderers.KIND, lambda: None, "is a value of type function, not an instance of Renderer"),
    ],
)
def test_what_is_no_plugin_of_the_kind_is_rejected_when_it_is_loaded(kind: Kind, plugin: Any, why: str) -> None:
    with pytest.raises(PluginError, match=why) as raised:
        kind.accept(plugin, "acme", ORIGIN)
    assert OWNER in raised.value.message
