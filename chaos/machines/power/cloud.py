"""Parts shared by the power controls of clouds and hypervisors."""

from __future__ import annotations

import importlib
from typing import Any

from chaos.core.errors import NodefallError, Refused
from chaos.core.provider_id import provider_parts
from chaos.machines.driver import HostContext

MAX_ERROR = 300  # characters of a provider's message that are shown
CONNECT_TIMEOUT, READ_TIMEOUT = 10.0, 30.0  # seconds of wall time


def load_sdk(module: str, kind: str) -> Any:
    """The module of a provider's SDK, which is an extra: it is imported only where a host needs it. Raises Refused.

    No SDK is needed to type-check nodefall: what is used of it is described by Protocols.
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise Refused(
            f"power control {kind} cannot be used: {module} is not installed",
            hint=f"run pip install 'nodefall[{kind}]'",
        ) from error


def machine_parts(host: HostContext, kind: str, scheme: str) -> tuple[str, ...]:
    """The parts of the Node's provider ID. Raises Refused where it has none of this provider."""
    return provider_parts(required_provider_id(host, kind, scheme), scheme)


def required_provider_id(host: HostContext, kind: str, scheme: str) -> str:
    """The Node's provider ID. Raises Refused where it has none of this provider."""
    found = host.find_provider_id()
    if not provider_parts(found, scheme):
        reported = f"the provider ID {found}" if found else "no provider ID"
        raise Refused(
            f"power control {kind} of {host.node} has no machine: its Node has {reported}",
            hint="name the machine in power of its host in the inventory",
        )
    return found


def not_carried_out(what: str, why: object, hint: str) -> Refused:
    """The provider has rejected a request, so that nothing has happened."""
    return Refused(f"{what}: {str(why)[:MAX_ERROR]}", hint=hint)


def maybe_carried_out(what: str, why: object) -> NodefallError:
    """No answer, or one that leaves open what happened."""
    return NodefallError(
        f"{what}: {str(why)[:MAX_ERROR]}", hint="check the state of the machine: the request may have been carried out"
    )
