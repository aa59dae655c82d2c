"""Transport to Windows hosts over WinRM (WS-Management)."""

from __future__ import annotations

import re
from contextlib import suppress
from typing import TYPE_CHECKING, Annotated, Self

from pydantic import AfterValidator, Field, model_validator

from chaos.core.driver import FilePath
from chaos.core.errors import NodefallError, Refused
from chaos.core.field_types import HostAddress, Model, Secret
from chaos.core.redaction import register_secret
from chaos.machines.driver import HostContext, TransportDriver
from chaos.machines.local import read_secret
from chaos.machines.sessions.settings import host_settings
from chaos.machines.winrm.endpoint import ENCRYPTING, PORTS, Authentication, Endpoint, Scheme, certificate_key

if TYPE_CHECKING:
    from chaos.machines.winrm.session import WinRmSession


def _fingerprint(text: str) -> str:
    digits = re.sub(r"^SHA-?256:|[: ]", "", text, flags=re.IGNORECASE).lower()
    if not re.fullmatch(r"[0-9a-f]{64}", digits):
        raise ValueError("it is not the SHA-256 of a certificate: write 64 hexadecimal digits, with or without colons")
    return digits


class WinRmOptions(Model):
    auth: Authentication = "ntlm"
    password: Secret | None = Field(None, description="The password for auth ntlm, credssp and basic.")
    scheme: Scheme = Field(
        "https", description="The scheme. http needs auth ntlm, kerberos or credssp, which encrypt messages."
    )
    hostname: HostAddress | None = Field(
        None, description="The name in the host's certificate and Kerberos principal. By default, the address."
    )
    ca_file: FilePath | None = Field(
        None,
        alias="caFile",
        description="A file with the CAs of the host's certificate. By default, the CAs of this machine.",
    )
    fingerprint: Annotated[str, AfterValidator(_fingerprint)] | None = Field(
        None, description="The SHA-256 fingerprint of the host's certificate, which alone is then trusted."
    )
    certificate: FilePath | None = Field(
        None, description="The PEM file with the client certificate, for auth certificate."
    )
    key: FilePath | None = Field(None, description="The PEM file with the private key, for auth certificate.")

    @model_validator(mode="after")
    def _complete(self) -> Self:
        if self.auth in ("ntlm", "credssp", "basic") and self.password is None:
            raise ValueError(f"auth {self.auth} needs a password")
        if self.auth == "certificate" and (self.certificate is None or self.key is None):
            raise ValueError("auth certificate needs certificate and key")
        if self.scheme == "http" and self.auth not in ENCRYPTING:
            raise ValueError(f"auth {self.auth} over http would send messages unencrypted; use https")
        if self.scheme == "http" and (self.ca_file or self.fingerprint):
            raise ValueError("caFile and fingerprint need scheme https")
        return self


class WinRmTransport(TransportDriver):
    """The WinRM service, without jump hosts; commands run as the login user, an administrator."""

    name = "winrm"
    options = WinRmOptions
    systems = frozenset({"windows"})

    def open_session(self, host: HostContext) -> WinRmSession:
        from chaos.machines.winrm.endpoint import LoginPause  # noqa: PLC0415 - slow
        from chaos.machines.winrm.session import WinRmSession  # noqa: PLC0415

        endpoint = self.endpoint(host)
        logins = host.shared.get(("winrm-logins", endpoint.url, endpoint.user), LoginPause)
        session = WinRmSession(endpoint, host.pin, logins)
        session.connect()
        return session

    def known_keys(self, host: HostContext) -> frozenset[str]:
        with suppress(NodefallError):  # reported where the host is used
            if pinned := self.options_of(host).fingerprint:
                return frozenset({certificate_key(pinned)})
        return frozenset()

    def endpoint(self, host: HostContext) -> Endpoint:
        """The host's service, with the secret. Raises Refused."""
        options: WinRmOptions = self.options_of(host)
        entry, defaults = host.host, host.inventory.defaults
        user = entry.user or defaults.user or ""
        if options.auth not in ("certificate", "kerberos") and not user:
            raise Refused(
                f"{host.key} has no user for auth {options.auth}", hint=r"give user in the inventory, as DOMAIN\name"
            )
        if entry.proxy_jump:
            raise Refused(
                f"{host.key} has proxyJump, but WinRM has no jump hosts", hint="use transport ssh, or a route"
            )
        password = read_secret(options.password, host.secrets) if options.password else ""
        if password:
            register_secret(f"{user}:{password}")
        address = "" if entry.address else host.find_address()
        common = host_settings(host.inventory, host.key, host.local, address)
        local = host.secrets.path
        return Endpoint(
            name=host.key,
            address=common.address,
            port=entry.port or (defaults.port if defaults.transport == self.name else None) or PORTS[options.scheme],
            auth=options.auth,
            user=user,
            password=password,
            scheme=options.scheme,
            hostname=options.hostname or "",
            ca_file=local(options.ca_file) if options.ca_file else None,
            fingerprint=options.fingerprint or "",
            certificate=local(options.certificate) if options.certificate else None,
            key=local(options.key) if options.key else None,
            connect_timeout=common.connect_timeout,
        )


DRIVER = WinRmTransport()
