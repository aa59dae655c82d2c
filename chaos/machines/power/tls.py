"""TLS to power controls: certificates are always verified, with the system's authorities or one of the inventory."""

from __future__ import annotations

import ssl

from chaos.core.errors import Refused
from chaos.machines.power.secrets import SecretContext


def client_context(ca_file: str | None, context: SecretContext) -> ssl.SSLContext:
    """A context that verifies certificate and name. Raises Refused for a file that cannot be used."""
    path = context.path(ca_file) if ca_file else None
    try:
        return ssl.create_default_context(cafile=path)
    except (OSError, ssl.SSLError) as error:
        raise Refused(f"caFile {path} cannot be used: {error.strerror}", hint="it must be a PEM file") from error
