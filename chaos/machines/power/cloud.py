"""Parts shared by the power controls of clouds and hypervisors."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from chaos.core.command import PowerCapability, PowerState
from chaos.core.errors import NodefallError, Refused, Unreachable
from chaos.core.ports import ALL_CAPABILITIES
from chaos.core.power_identity import provider_parts
from chaos.machines.driver import HostContext

MAX_ERROR = 300  # characters of a provider's message that are shown
CONNECT_TIMEOUT, READ_TIMEOUT = 10.0, 30.0  # seconds of wall time


def load_sdk(module: str, kind: str) -> Any:
    """Import a provider's SDK. It is an extra, so only a host that needs it imports it. Raises Refused.

    No SDK is needed to type-check nodefall: Protocols describe the parts that it uses.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Refused(
            f"power control {kind} cannot be used: {module} is not installed",
            hint=f"run pip install 'nodefall[{kind}]'",
        ) from error


def machine_parts(host: HostContext, kind: str, scheme: str) -> tuple[str, ...]:
    """The parts of the Node's provider ID. Raises Refused if it has no ID of this provider."""
    return provider_parts(required_provider_id(host, kind, scheme), scheme)


def required_provider_id(host: HostContext, kind: str, scheme: str) -> str:
    """The Node's provider ID. Raises Refused if it has no ID of this provider."""
    found = host.find_provider_id()
    if not provider_parts(found, scheme):
        reported = f"the provider ID {found}" if found else "no provider ID"
        raise Refused(
            f"power control {kind} of {host.node} has no machine: its Node has {reported}",
            hint="name the machine in power of its host in the inventory",
        )
    return found


def not_carried_out(what: str, why: object, hint: str) -> Refused:
    """The error for a request that the provider rejected: nothing has happened."""
    return Refused(f"{what}: {str(why)[:MAX_ERROR]}", hint=hint)


def maybe_carried_out(what: str, why: object) -> NodefallError:
    """The error for a request that may have been carried out: there was no answer, or the answer leaves this open."""
    return NodefallError(
        f"{what}: {str(why)[:MAX_ERROR]}", hint="check the state of the machine: the request may have been carried out"
    )


@dataclass(frozen=True, slots=True)
class Failures:
    """Errors of a provider's SDK. ``status``: the HTTP status of an answer, None for an error without one.

    ``hint``: what to do about an answer that rejects a request; ``network``: where there is no answer.
    """

    errors: tuple[type[Exception], ...]
    status: Callable[[Any], int | None]
    hint: Callable[[Any], str]
    network: str


class ProviderControl(ABC):
    """Base of the power controls of cloud machines: the machine's name, and calls to the SDK."""

    def __init__(self, failures: Failures) -> None:
        self._failures = failures

    @property
    def capabilities(self) -> frozenset[PowerCapability]:
        """All capabilities, unless a subclass restricts them."""
        return ALL_CAPABILITIES

    @property
    @abstractmethod
    def _label(self) -> str:
        """The name of the machine in messages."""

    @contextmanager
    def _calls(self, what: str, *, changes: bool = False) -> Iterator[None]:
        """Raises Unreachable or Refused if nothing has happened, NodefallError if it may have."""
        what, failures = f"{self._label}: {what} failed", self._failures
        try:
            yield
        except failures.errors as error:
            status = failures.status(error)
            if status is not None and 400 <= status < 500:
                raise not_carried_out(what, error, failures.hint(error)) from error
            if changes or status is not None:
                raise maybe_carried_out(what, error) from error
            raise Unreachable(f"{what}: {error}", hint=failures.network) from error

    def _known_state(self, states: Mapping[str, PowerState], name: str, hint: str) -> PowerState:
        """The power state for the provider's ``name``. Raises NodefallError for an unknown name."""
        if name not in states:
            raise NodefallError(f"{self._label} has no power state: it is {name}", hint=hint)
        return states[name]
