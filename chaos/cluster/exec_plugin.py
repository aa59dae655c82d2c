"""Credentials from a program: the exec plug-in of a kubeconfig's user, run as client-go runs it.

Source: k8s.io/client-go plugin/pkg/client/auth/exec/exec.go, pkg/apis/clientauthentication/v1/types.go.
"""

from __future__ import annotations

import base64
import os
import subprocess
import sys
import threading
import time
from datetime import datetime
from typing import Any

import msgspec
from msgspec import Struct

from chaos.cluster.access import Access
from chaos.cluster.errors import OTHER, KubeUnreachable
from chaos.cluster.go_yaml import load_yaml
from chaos.cluster.kubeconfig import ExecEntry
from chaos.cluster.kubeconfig_checks import has_control_character
from chaos.cluster.watch_codec import DECODE_ERRORS
from chaos.core.clock.system import wall_time
from chaos.core.errors import BadInput, NodefallError
from chaos.core.programs import TooMuchOutput, run_bounded
from chaos.core.redaction import register_secret
from chaos.core.text import printable
from chaos.core.trusted_files import refuse_untrusted_command

_TIMEOUT = 120.0  # wall seconds for the program
_PAUSE = 10.0  # wall seconds between runs that fail, or that the API server's refusals cause
_MAX_OUTPUT = 4 << 20  # bytes
_QUOTED = 300  # characters of what the program writes


class PluginCredentials(Struct, frozen=True):
    """The output of the program. ``expires``: seconds since the epoch, or None for never."""

    token: str = ""
    certificate: bytes = b""
    key: bytes = b""
    expires: float | None = None


class _Status(Struct, rename="camel"):
    expiration_timestamp: datetime | None = None
    token: str | None = ""
    client_certificate_data: str | None = ""
    client_key_data: str | None = ""


class _ExecCredential(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Status | None = None


class ExecPlugin:
    """The program of one user. Thread-safe: it is run once for all that wait for it.

    It is run when there are no credentials, when they have expired, and when the API server refuses them.
    """

    def __init__(self, entry: ExecEntry, access: Access) -> None:
        self._entry, self._access = entry, access
        self._lock = threading.Lock()
        self._credentials: PluginCredentials | None = None
        self._failure: tuple[float, NodefallError] | None = None  # since when
        self._renewed_at = float("-inf")

    def credentials(self) -> PluginCredentials:
        """The present credentials. Raises KubeUnreachable."""
        with self._lock:
            found = self._credentials
            if found is None or (found.expires is not None and wall_time() > found.expires):
                found = self._credentials = self._run_unless_failed()
            return found

    def renew(self, used: PluginCredentials) -> bool:
        """After a 401: whether there are credentials other than ``used``. Raises KubeUnreachable."""
        with self._lock:
            if self._credentials is not used:
                return True
            if time.monotonic() - self._renewed_at < _PAUSE:
                return False
            self._renewed_at = time.monotonic()
            self._credentials = self._run_unless_failed()
            return True

    def _run_unless_failed(self) -> PluginCredentials:
        if self._failure and time.monotonic() - self._failure[0] < _PAUSE:
            raise self._failure[1]
        try:
            found = self._decode(self._run())
        except NodefallError as error:
            self._failure = time.monotonic(), error
            raise
        self._failure = None
        return found

    def _run(self) -> bytes:
        """Run the program and return its output. On a terminal, its prompts and errors are shown there."""
        is_interactive = self._is_interactive()
        argv = [self._entry.command, *self._entry.args]
        environment = os.environ | {each.name: each.value for each in self._entry.env}
        environment["KUBERNETES_EXEC_INFO"] = msgspec.json.encode(self._info(is_interactive)).decode()
        program = self._program(argv)
        try:
            done = run_bounded(
                argv,
                _TIMEOUT,
                _MAX_OUTPUT,
                env=environment,
                executable=program,
                has_terminal=is_interactive,
                has_own_session=not is_interactive,
            )
        except FileNotFoundError as error:
            raise self._failed("there is no such program", self._entry.install_hint) from error
        except OSError as error:
            raise self._failed(f"it cannot be started: {error.strerror}") from error
        except TooMuchOutput as error:
            raise self._failed(str(error)) from error
        except subprocess.TimeoutExpired as error:
            raise self._failed(f"it has not ended after {_TIMEOUT:.0f} s") from error
        if done.returncode:
            said = printable(done.stderr.decode("utf-8", "replace").strip(), _QUOTED)
            raise self._failed(f"it ended with exit code {done.returncode}" + (f": {said}" if said else ""))
        return done.stdout

    def _program(self, argv: list[str]) -> str:
        """The program's path, from the PATH of this process and not of the plug-in's env. Raises KubeUnreachable."""
        try:
            program = refuse_untrusted_command(argv)
        except BadInput as error:
            problem = error.problems[0]
            raise self._failed(f"{problem.file}: {problem.message}", problem.hint) from error
        if program is None and "/" not in argv[0]:
            raise self._failed("there is no such program", self._entry.install_hint)
        return program or argv[0]

    def _is_interactive(self) -> bool:
        """Whether the program may ask on the terminal."""
        mode = self._entry.interactive_mode or "IfAvailable"
        has_terminal = sys.stdin is not None and sys.stdin.isatty()
        if mode == "Always" and not has_terminal:
            raise self._failed("its interactiveMode is Always, and standard input is not a terminal")
        return mode != "Never" and has_terminal

    def _info(self, is_interactive: bool) -> dict[str, Any]:
        """The ExecCredential that the program is given."""
        spec: dict[str, Any] = {"interactive": is_interactive}
        if self._entry.provide_cluster_info:
            spec["cluster"] = self._cluster_info()
        return {"kind": "ExecCredential", "apiVersion": self._entry.api_version, "spec": spec}

    def _cluster_info(self) -> dict[str, Any]:
        access, proxy = self._access, self._access.proxy
        known = {
            "server": access.plugin_server,
            "tls-server-name": access.tls_name,
            "insecure-skip-tls-verify": not access.verifies,
            "certificate-authority-data": base64.b64encode(access.ca.read()).decode() if access.ca else "",
            "proxy-url": proxy.url if proxy else "",
            "disable-compression": access.disable_compression,
        }
        return {key: value for key, value in known.items() if value} | {"config": access.plugin_config}

    def _decode(self, output: bytes) -> PluginCredentials:
        """The credentials in what the program has printed. Raises KubeUnreachable."""
        try:
            is_json = output.lstrip().startswith(b"{")
            document = msgspec.json.decode(output) if is_json else load_yaml("", output)
            answer = msgspec.convert(document, _ExecCredential)
        except (BadInput, *DECODE_ERRORS) as error:
            raise self._failed("its output is not an ExecCredential") from error
        if answer.kind != "ExecCredential" or answer.api_version != self._entry.api_version:
            printed = printable(f"{answer.kind or 'no kind'} of {answer.api_version or 'no apiVersion'}", _QUOTED)
            raise self._failed(
                f"it printed {printed}, and its apiVersion in the kubeconfig is {self._entry.api_version}"
            )
        status = answer.status or _Status()
        certificate, key = status.client_certificate_data or "", status.client_key_data or ""
        token = status.token or ""
        for secret in (token, key):
            register_secret(secret)
        if bool(certificate) != bool(key) or not (token or key):
            raise self._failed("it printed neither a token nor a certificate with its key")
        if has_control_character(token):
            raise self._failed("the token that it printed has a control character")
        expires = status.expiration_timestamp
        if expires is not None and expires.tzinfo is None:
            raise self._failed("its expirationTimestamp has no time zone")
        return PluginCredentials(token, certificate.encode(), key.encode(), expires.timestamp() if expires else None)

    def _failed(self, why: str, hint: str = "") -> KubeUnreachable:
        message = f"the kubeconfig's exec plug-in {printable(self._entry.command)} gives no credentials: {why}"
        return KubeUnreachable(OTHER, message, hint=printable(hint) if hint else "")
