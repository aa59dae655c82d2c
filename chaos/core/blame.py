"""Reports a plug-in's failures as its own: an exception, a result of another type, a hang."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from types import new_class
from typing import Any

from chaos.core.errors import NodefallError, PluginError
from chaos.core.outside import Origin
from chaos.core.threads import ContextThread

_log = logging.getLogger(__name__)


def _no_change(result: Any, *_: Any) -> Any:
    return result


@dataclass(frozen=True, slots=True)
class Hook:
    """What nodefall calls of a plug-in. ``returns``: the type of its result, ``items`` that of each item of a sequence.

    ``raises`` is what it may raise. It must return within ``seconds`` of wall time; None for what has deadlines
    already. ``instead`` makes the result of a description of the fault; without it, PluginError is raised. ``adapt``
    gets the result, the blame and the arguments.
    """

    returns: type | tuple[type, ...] = object
    items: type | None = None
    raises: tuple[type[Exception], ...] = (NodefallError,)
    seconds: float | None = 60.0
    instead: Callable[[str], Any] | None = None
    adapt: Callable[..., Any] = _no_change


@dataclass(frozen=True, slots=True)
class Blame:
    """The plug-in that is to blame."""

    origin: Origin
    kind: str
    name: str

    def __str__(self) -> str:
        return f"{self.origin.owner}, {self.kind} {self.name}"

    def error(self, hook: str, why: str) -> PluginError:
        """The error that names the plug-in and the hook."""
        owner = self.origin.distribution or "the plug-in"
        return PluginError(f"{self}, in {hook}: {why}", hint=f"report it to the authors of {owner}, or uninstall it")

    def guard(self, function: Callable[..., Any], name: str, hook: Hook) -> Callable[..., Any]:
        """``function``, blamed for what goes wrong in it."""

        def guarded(*args: Any, **named: Any) -> Any:
            try:
                return hook.adapt(self._call(lambda: function(*args, **named), name, hook), self, *args)
            except PluginError as error:
                if hook.instead is None:
                    raise
                return hook.instead(error.message)

        return guarded

    def guard_methods(self, plugin: Any, hooks: Mapping[str, Hook]) -> Any:
        """``plugin``, whose methods in ``hooks`` are blamed from now on. Raises PluginError if it is no instance.

        No copy: threads of it may have been made already.
        """

        kind = type(plugin)
        if "_is_guarded" in vars(kind):
            return plugin
        properties = {name for name in hooks if isinstance(getattr(kind, name, None), property)}

        inherited: Any = kind.__getattribute__

        def get(each: Any, name: str) -> Any:
            def read() -> Any:
                return inherited(each, name)

            if name in properties:
                return self.guard(read, name, hooks[name])()
            value = read()
            return self.guard(value, name, hooks[name]) if name in hooks and callable(value) else value

        try:
            guarded = new_class(
                kind.__name__,
                (kind,),
                exec_body=lambda body: body.update(__getattribute__=get, __slots__=(), _is_guarded=True),
            )
            object.__setattr__(plugin, "__class__", guarded)
        except TypeError as error:
            raise PluginError(f"{self}: rejected: it is not an instance of a class: {error}") from error
        return plugin

    def _call(self, call: Callable[[], Any], name: str, hook: Hook) -> Any:
        expected: tuple[type[Exception], ...] = (PluginError, *hook.raises)
        result: Any
        try:
            result = self._call_in_time(call, name, hook.seconds)
            if hook.items is not None and isinstance(result, hook.returns):
                result = self._call_in_time(partial(list, result), name, hook.seconds)  # it may be a generator
        except expected:
            raise
        except (Exception, SystemExit) as error:
            _log.exception("%s, in %s", self, name)
            raise self.error(name, f"{type(error).__name__}: {error}") from error
        items: list[Any] = result if isinstance(result, list) and hook.items is not None else []
        if not items and not isinstance(result, (*_types(hook.returns), *((list,) if hook.items else ()))):
            raise self.error(name, f"it returned {_type_text(result)}, not {_expected(hook.returns)}")
        for item in items:
            if not isinstance(item, hook.items or object):
                raise self.error(name, f"it returned {_type_text(item)} among its results, not {_expected(hook.items)}")
        return result

    def _call_in_time(self, call: Callable[[], Any], name: str, seconds: float | None) -> Any:
        """The result of ``call``, in a thread that is given up when the time is over."""
        if seconds is None:
            return call()
        results: list[Any] = []
        errors: list[BaseException] = []

        def run() -> None:
            try:
                results.append(call())
            except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
                errors.append(error)

        thread = ContextThread(run, f"{self.kind} {self.name}")
        thread.start()
        thread.join(seconds)
        if errors:
            raise errors[0]
        if not results:
            raise self.error(name, f"it has not returned for {seconds:g} s")
        return results[0]


def _types(wanted: type | tuple[type, ...]) -> tuple[type, ...]:
    return wanted if isinstance(wanted, tuple) else (wanted,)


def _type_text(value: Any) -> str:
    return "nothing" if value is None else f"a value of type {type(value).__name__}"


def _expected(wanted: type | tuple[type, ...] | None) -> str:
    names = [each.__name__ for each in (wanted if isinstance(wanted, tuple) else (wanted,)) if each]
    return " or ".join("nothing" if name == "NoneType" else name for name in names)


Guard = Callable[[Any, Blame], Any]


@dataclass(frozen=True, slots=True)
class Kind:
    """The required type of a plug-in: an instance of ``of``, or an object with these attributes."""

    name: str
    of: type | tuple[str, ...]
    guard: Guard

    def accept(self, plugin: Any, name: str, origin: Origin) -> Any:
        """The plug-in, blamed for what it does. Raises PluginError for something else than a plug-in of the kind."""
        blame = Blame(origin, self.name, name)
        if isinstance(self.of, tuple):
            if missing := [attribute for attribute in self.of if not hasattr(plugin, attribute)]:
                raise PluginError(f"{blame}: rejected: {origin.value} has no {' and no '.join(missing)}")
        elif not isinstance(plugin, self.of):
            raise PluginError(
                f"{blame}: rejected: {origin.value} is {_type_text(plugin)}, not an instance of {self.of.__name__}"
            )
        return self.guard(plugin, blame)
