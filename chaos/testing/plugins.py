"""The contracts of assertions, power drivers, observers and renderers as helpers for tests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, get_args

import msgspec
from pydantic import BaseModel, ValidationError

from chaos.core.assertion import Assertion, NothingToJudge, Undecidable
from chaos.core.command import PowerCapability, PowerState
from chaos.core.driver import PowerSettings
from chaos.core.errors import NodefallError
from chaos.core.inventory import Inventory
from chaos.core.ports import Clock, MachineIdentity, Observer, PowerControl, SoftOffControl
from chaos.core.recording import RecordingEntry
from chaos.core.result import RunResult
from chaos.core.timeline import Timeline
from chaos.core.verdict import Verdict
from chaos.documents.yaml_text import parse_flow
from chaos.machines.driver import HostContext, PowerDriver
from chaos.machines.local import SecretContext
from chaos.machines.sessions.settings import LocalUser
from chaos.reports.run.renderer import Renderer
from chaos.testing.recordings import T0, RecordingBuilder, judge_assertion

_HOOKS = (
    *("name", "summary", "example", "needs", "params", "node_fields", "moment_fields", "subjects", "claim", "sources"),
    *("host_facts", "masks_itself", "only_named_nodes", "uses_controller_manager"),
)


def host_context(power: Mapping[str, Any], environment: Mapping[str, str] | None = None) -> HostContext:
    """The host ``n1`` with this power control; ``environment``: where its secrets are."""
    inventory = Inventory.model_validate(
        {
            "apiVersion": "nodefall.dev/v1alpha1",
            "kind": "Inventory",
            "metadata": {"name": "test"},
            "cluster": {"kubeconfig": "kubeconfig"},
            "hosts": {"n1": {}},
        }
    )
    host = inventory.hosts["n1"].model_copy(update={"power": power})
    inventory = inventory.model_copy(update={"hosts": {"n1": host}})
    return HostContext(inventory, "n1", "n1", LocalUser("ops", Path("/")), SecretContext(environment or {}, Path("/")))


def check_assertion(assertion: Assertion, recording: RecordingBuilder, end: float) -> Verdict:
    """Check that an assertion keeps its contract on a recording in which it is held, and return that verdict.

    Raises AssertionError with every breach: of its attributes; of the example, whose parameters must fit; if the
    recording is not held with the example; and if it is still held when nothing was observed for a while.
    """
    if breaches := assertion_breaches(assertion):
        raise AssertionError(f"assertion {assertion.name}: " + "; ".join(breaches))
    verdict = judge_assertion(assertion, assertion.example, recording, end)
    if verdict.status != "held":
        raise AssertionError(f"assertion {assertion.name}: the example is {verdict.status}: {verdict.because}")
    begin = min(line.t for line in recording.lines if line.kind == "action")
    blind = RecordingBuilder()
    blind.lines = [line for line in recording.lines if line.t < begin or line.kind in ("action", "host")]
    try:
        unseen = judge_assertion(assertion, assertion.example, blind.blind(begin - T0, None, "everything"), end)
    except (Undecidable, NothingToJudge):
        return verdict
    if unseen.status == "held":
        raise AssertionError(f"assertion {assertion.name}: it is held although nothing was observed")
    return verdict


def assertion_breaches(assertion: Assertion) -> list[str]:
    """Breaches in what the assertion says of itself, for which no recording is needed."""
    return list(_attributes(assertion)) or list(_assertion_example(assertion))


def _attributes(assertion: Assertion) -> Iterator[str]:
    for name in _HOOKS[:8]:
        if not hasattr(assertion, name):
            yield f"it has no {name}"
    for name in (name for name in dir(assertion) if not name.startswith("_") and name not in _HOOKS):
        if near := get_close_matches(name, _HOOKS, 1, 0.8):
            yield f"an assertion has no {name}: write {near[0]}, or begin its name with an underscore"
    params = getattr(assertion, "params", None)
    if not isinstance(params, type) or not issubclass(params, BaseModel):
        yield "params is not a pydantic model"
        return
    if params.model_config.get("extra") != "forbid":
        yield "params takes unknown keys: derive it from chaos.extend.assertion.Model"
    for kind in ("node_fields", "moment_fields"):
        if unknown := sorted(set(getattr(assertion, kind, ())) - params.model_fields.keys()):
            yield f"{kind} names {unknown[0]}, which is no field of params"


def _assertion_example(assertion: Assertion) -> Iterator[str]:
    try:
        example = parse_flow(assertion.example)
        assertion.params.model_validate(example.get("with", {}))
    except ValidationError as error:
        first = error.errors()[0]
        yield f"the example has other parameters: {'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (ValueError, AttributeError) as error:
        yield f"the example is no expectation in YAML: {error}"
    else:
        if example.get("assert") != assertion.name:
            yield "the example is no expectation of this assertion"


def check_power_driver(
    driver: PowerDriver, settings: Mapping[str, Any], environment: Mapping[str, str] | None = None
) -> PowerControl:
    """Check that a driver keeps its contract, and return the control of a machine that can be switched.

    ``settings`` are those of a machine that may be switched off and on; it ends as it began. Raises AssertionError:

    - ``kind`` of the settings is a Literal of the driver's name, and unknown keys are refused;
    - ``capabilities`` names what the control can do;
    - after ``off``, the state is off, and after ``on`` it is on, also when each is called twice;
    - the machine has an identity, if the control knows one.
    """
    fail = f"power control {driver.name}: "
    if not issubclass(driver.settings, PowerSettings):
        raise AssertionError(f"{fail}its settings are not derived from PowerSettings")  # noqa: TRY004 - a test fails
    if breaches := power_breaches(driver):
        raise AssertionError(fail + "; ".join(breaches))
    context = host_context(settings, environment)
    power = driver.settings.model_validate(settings)
    control = driver.make(power, context)
    wanted = {PowerCapability.ON: "on", PowerCapability.OFF: "off", PowerCapability.STATE: "state"}
    if missing := [name for can, name in wanted.items() if can in control.capabilities and not hasattr(control, name)]:
        raise AssertionError(f"{fail}capabilities has {missing[0]}, and the control has no such method")
    if PowerCapability.SOFT_OFF in control.capabilities and not isinstance(control, SoftOffControl):
        raise AssertionError(f"{fail}capabilities has soft-off, and the control has no soft_off")
    if {PowerCapability.ON, PowerCapability.OFF, PowerCapability.STATE} <= set(control.capabilities):
        _switch(control, fail)
    if isinstance(control, MachineIdentity):
        msgspec.json.encode(control.identity())
    return control


def power_breaches(driver: PowerDriver) -> list[str]:
    """Breaches in the settings that a driver declares."""
    kind, found = driver.settings.model_fields.get("kind"), []
    if kind is None or get_args(kind.annotation) != (driver.name,):
        found.append("in its settings, kind is not a Literal of the driver's name")
    if driver.settings.model_config.get("extra") != "forbid":
        found.append("its settings take unknown keys: derive them from chaos.extend.power.PowerSettings")
    return found


def _switch(control: PowerControl, fail: str) -> None:
    before = control.state()
    if not isinstance(before, PowerState):
        raise AssertionError(f"{fail}state returned {before!r}, not a PowerState")  # noqa: TRY004 - a test fails
    order = ("off", "on") if before is PowerState.ON else ("on", "off")
    for verb in order:
        for _ in range(2):
            try:
                getattr(control, verb)()
            except NodefallError as error:
                raise AssertionError(f"{fail}{verb} failed: {error.message}") from error
            if control.state() != verb:
                raise AssertionError(f"{fail}the state after {verb} is {control.state()}")


def check_observer(observer: Observer, clock: Clock, seconds: float = 10.0) -> Sequence[RecordingEntry]:
    """Check that an observer keeps its contract, and return what it recorded in ``seconds`` of ``clock``.

    Raises AssertionError if it has not synced, if an entry survives no JSON, if it records nothing, or if it records
    after its stop.
    """
    entries: list[RecordingEntry] = []
    observer.start(entries.append)
    clock.sleep(seconds)
    if not observer.has_synced():
        raise AssertionError(f"observer {observer.name}: it has not synced within {seconds:g} s")
    observer.stop()
    recorded = list(entries)
    clock.sleep(seconds)
    if len(entries) > len(recorded):
        raise AssertionError(f"observer {observer.name}: it records after its stop")
    if not recorded:
        raise AssertionError(f"observer {observer.name}: it recorded nothing within {seconds:g} s")
    for entry in recorded:
        if msgspec.json.decode(msgspec.json.encode(entry), type=RecordingEntry).kind != entry.kind:
            raise AssertionError(f"observer {observer.name}: its entry {entry.kind} does not survive JSON")
    return recorded


def renderer_breaches(renderer: Renderer) -> list[str]:
    """Breaches in the name of a renderer's file."""
    is_name = Path(renderer.file).name == renderer.file
    return [] if is_name else [f"its file {renderer.file!r} is no name of a file"]


def check_renderer(renderer: Renderer, result: RunResult, timeline: Timeline) -> str:
    """Check that a renderer keeps its contract, and return its text.

    Raises AssertionError if its file has a folder, if it returns no text, or another text for the same result.
    """
    if breaches := renderer_breaches(renderer):
        raise AssertionError(f"renderer {renderer.name}: " + "; ".join(breaches))
    text = renderer.render(result, timeline)
    if not isinstance(text, str):
        raise AssertionError(f"renderer {renderer.name}: it returned {type(text).__name__}, not a text")  # noqa: TRY004 - a test fails
    if renderer.render(result, timeline) != text:
        raise AssertionError(f"renderer {renderer.name}: it is not pure: it returned another text for the same result")
    return text
