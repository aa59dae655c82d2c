"""Registry of plug-ins: the modules of our packages, and entry points of other distributions."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import ModuleType
from typing import Any

import msgspec
from pydantic import BaseModel, ValidationError

from chaos.core.action import AnyAction
from chaos.core.assertion import Assertion
from chaos.core.binding import BoundAssertion, BoundStep
from chaos.core.blame import Kind
from chaos.core.errors import PluginError
from chaos.core.experiment import Expectation, Experiment, Step
from chaos.core.fact import HostFact
from chaos.core.outside import load_outside


class Group(StrEnum):
    """Entry point groups; an entry point names a plug-in object, as the built-in modules do in a constant."""

    ACTIONS = "nodefall.actions"
    WINDOWS_ACTIONS = "nodefall.windows_actions"
    ASSERTIONS = "nodefall.assertions"
    FACTS = "nodefall.facts"
    WINDOWS_FACTS = "nodefall.windows_facts"
    CHECKS = "nodefall.checks"
    OBSERVERS = "nodefall.observers"
    TRANSPORTS = "nodefall.transports"
    POWER = "nodefall.power"
    RENDERERS = "nodefall.renderers"


@dataclass(frozen=True, slots=True)
class PluginRegistry:
    """Plug-ins by name. Kinds that a caller does not need may be left empty.

    ``windows_actions`` are the Windows forms of ``actions`` of the same name.
    """

    actions: Mapping[str, AnyAction]
    assertions: Mapping[str, Assertion]
    facts: Mapping[str, HostFact] = field(default_factory=dict)
    checks: Mapping[str, Any] = field(default_factory=dict)
    observers: Mapping[str, Any] = field(default_factory=dict)
    transports: Mapping[str, Any] = field(default_factory=dict)
    power: Mapping[str, Any] = field(default_factory=dict)
    renderers: Mapping[str, Any] = field(default_factory=dict)
    windows_actions: Mapping[str, AnyAction] = field(default_factory=dict)
    _recorded: dict[tuple[str, bytes], BoundStep | None] = field(default_factory=dict, compare=False, repr=False)

    def action_on(self, name: str, system: str) -> AnyAction:
        """The form of an action for hosts with an operating system, else its only one. Raises KeyError."""
        action = self.actions[name]
        if action.on_host and system == "windows" and system not in action.systems:
            return self.windows_actions.get(name, action)
        return action

    def bind(self, experiment: Experiment) -> Experiment:
        """Bind the steps and expectations of an experiment that are not bound yet. Steps with an unknown action or
        invalid parameters stay unbound, because another version may have stored them.
        """
        for step in experiment.spec.method:
            self.bind_step(step)
        for expectation in experiment.spec.expectations:
            self.bind_expectation(expectation)
        return experiment

    def bind_recorded(self, action: str, params: Mapping[str, Any]) -> BoundStep | None:
        """A recorded step, bound once; None if its action is unknown, or another recorder wrote other parameters."""
        key = (action, msgspec.json.encode(params))
        if key not in self._recorded:
            self._recorded[key] = self._bind(action, params)
        return self._recorded[key]

    def _bind(self, name: str, given: Mapping[str, Any]) -> BoundStep | None:
        if name not in self.actions:
            return None
        action = self.actions[name]
        try:
            return BoundStep(action, self.windows_actions.get(name), action.params.model_validate(given))
        except ValidationError:
            return None

    def bind_step(self, step: Step) -> None:
        """Bind one step, unless it is bound."""
        if not step.is_bound and (bound := self._bind(step.action, step.with_)):
            step.bind(bound)

    def bind_expectation(self, expectation: Expectation) -> None:
        """Bind one expectation, unless it is bound, or its assertion is unknown."""
        assertion = self.assertions.get(expectation.assert_ or "")
        if assertion is None or expectation.bound is not None:
            return
        model: BaseModel | ValidationError
        try:
            model = assertion.params.model_validate(expectation.with_)
        except ValidationError as error:
            model = error
        expectation.bind(BoundAssertion(assertion, model))

    def systems_of(self, name: str) -> frozenset[str]:
        """Operating systems of the hosts that an action has a form for. Raises KeyError."""
        return self.actions[name].systems | (frozenset({"windows"}) if name in self.windows_actions else frozenset())


def discover(package: ModuleType, what: str | type, group: str = "", kind: Kind | None = None) -> dict[str, Any]:
    """Plug-ins by name, sorted: those in the modules of ``package``, and the entry points of ``group``.

    ``what``: the constant of each module that is one, or the class of those that a module has several of. Without a
    group only the built-in ones. ``kind`` is what those of the group must be. Raises PluginError for a name that is
    used twice, an entry point that cannot be loaded, and one without a name or of another kind.
    """
    found: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for origin, plugin in _builtin(package, what):
        _add(_name(plugin, origin), origin, plugin, found, origins)
    for name, origin, plugin in _external(group, kind) if group else ():
        _add(name, origin, plugin, found, origins)
    return dict(sorted(found.items()))


def discover_lazily(
    package: ModuleType,
    what: str | type,
    group: str = "",
    index: Mapping[str, tuple[str, ...]] | None = None,
    kind: Kind | None = None,
) -> Mapping[str, Any]:
    """As :func:`discover`, but a built-in plug-in is imported when it is first looked up.

    ``index``: the names of the plug-ins of each module. Without one, the module ``power_on`` has the plug-in
    ``power-on``, and one with a leading underscore has none.
    """
    found: dict[str, Any] = {}
    origins: dict[str, str] = {}
    for module, names in (_names_of_modules(package) if index is None else index).items():
        for name in names:
            origin = f"{package.__name__}.{module}"
            _add(name, origin, _Unloaded(origin, what, name), found, origins)
    for name, origin, plugin in _external(group, kind) if group else ():
        _add(name, origin, plugin, found, origins)
    return _LazyPlugins(dict(sorted(found.items())))


def _names_of_modules(package: ModuleType) -> dict[str, tuple[str, ...]]:
    modules = (info.name for info in pkgutil.iter_modules(package.__path__) if not info.ispkg)
    return {name: (name.replace("_", "-"),) for name in modules if not name.startswith("_")}


@dataclass(frozen=True, slots=True)
class _Unloaded:
    """A built-in plug-in that was not looked up yet; ``what`` as for :func:`discover`."""

    module: str
    what: str | type
    name: str

    def load(self) -> Any:
        found = vars(importlib.import_module(self.module))
        if isinstance(self.what, str):
            return found[self.what]
        return {getattr(v, "name", ""): v for v in found.values() if isinstance(v, self.what)}[self.name]


class _LazyPlugins(Mapping[str, Any]):
    """Plug-ins by name, some of them unloaded."""

    def __init__(self, plugins: dict[str, Any]) -> None:
        self._plugins = plugins

    def __getitem__(self, name: str) -> Any:
        plugin = self._plugins[name]
        if isinstance(plugin, _Unloaded):
            plugin = self._plugins[name] = plugin.load()
        return plugin

    def __contains__(self, name: object) -> bool:
        return name in self._plugins

    def __iter__(self) -> Iterator[str]:
        return iter(self._plugins)

    def __len__(self) -> int:
        return len(self._plugins)


def join(plugins: Mapping[str, Any], more: Mapping[str, Any]) -> Mapping[str, Any]:
    """Both registries together, sorted. Plug-ins that are not loaded stay unloaded. Raises PluginError for a name in
    both.
    """
    if twice := sorted(plugins.keys() & more.keys()):
        raise PluginError(f"duplicate plug-in name {twice[0]!r}", hint="uninstall one of them, or rename the plug-in")
    unloaded = more._plugins if isinstance(more, _LazyPlugins) else more
    return _LazyPlugins(dict(sorted({**plugins, **unloaded}.items())))


def _name(plugin: Any, origin: str) -> str:
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not name:
        raise PluginError(f"plug-in rejected: {origin} has no name", hint="set its attribute `name` to a text")
    return name


def _add(name: str, origin: str, plugin: Any, found: dict[str, Any], origins: dict[str, str]) -> None:
    if name in found:
        raise PluginError(
            f"duplicate plug-in name {name!r}: {origins[name]} and {origin}",
            hint="uninstall one of them, or rename the plug-in",
        )
    found[name], origins[name] = plugin, origin


def _builtin(package: ModuleType, what: str | type) -> Iterator[tuple[str, Any]]:
    """Origin and plug-in of each one in a module; what a module has imported of another one counts there only."""
    seen: set[int] = set()
    for info in pkgutil.iter_modules(package.__path__):
        module = importlib.import_module(f"{package.__name__}.{info.name}")
        for name, value in list(vars(module).items()):
            is_wanted = name == what if isinstance(what, str) else isinstance(value, what)
            if is_wanted and id(value) not in seen:
                seen.add(id(value))
                yield f"{module.__name__}.{name}", value


def _external(group: str, kind: Kind | None) -> Iterator[tuple[str, str, Any]]:
    """Name, origin and plug-in of each entry point."""
    for origin, plugin in load_outside(group):
        name = _name(plugin, str(origin))
        yield name, str(origin), kind.accept(plugin, name, origin) if kind else plugin
