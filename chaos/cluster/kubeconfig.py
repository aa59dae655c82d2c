"""Load a kubeconfig with the official client; errors carry a hint.

Its keys are in anonymous files in memory: a killed process leaves none of them behind.
"""

# ruff: noqa: PLC0415 - kubernetes is slow to import

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit
from urllib.request import getproxies

from chaos.core.errors import BadInput, NodefallError, bad_input
from chaos.core.redaction import register_secret
from chaos.core.trusted_files import refuse_untrusted_file

_lock = threading.Lock()
_paths: dict[str, str] = {}  # by hash of the content; the descriptors stay open as long as the process
_POOL_SIZE = 32  # connections, for watches, scrapes and writes together


def memory_file(content: str | bytes) -> str:
    """The path, in this process only, of an anonymous file with the content. Raises OSError."""
    data = content.encode() if isinstance(content, str) else content
    key = hashlib.sha256(data).hexdigest()
    if key not in _paths:
        descriptor = os.memfd_create("nodefall")
        with os.fdopen(os.dup(descriptor), "wb") as file:
            file.write(data)
        _paths[key] = f"/proc/self/fd/{descriptor}"
    return _paths[key]


@contextmanager
def keys_in_memory(kube_config: Any) -> Iterator[None]:
    """In the block, ``kubernetes.config.kube_config`` makes no temporary files of the data in a kubeconfig.

    ssl reads keys from files only. Where there are no files in memory (not Linux), the client's temporary files remain
    until the process ends.
    """
    name = "_create_temp_file_with_content"
    if not hasattr(os, "memfd_create") or not os.path.isdir("/proc/self/fd") or not hasattr(kube_config, name):
        yield
        return
    with _lock:
        original = getattr(kube_config, name)
        setattr(kube_config, name, lambda content, *_, **__: memory_file(content))
        try:
            yield
        finally:
            setattr(kube_config, name, original)


def load_configuration(kubeconfig: str, context: str | None) -> Any:
    """The client's Configuration. Raises BadInput for the file, NodefallError if there are no credentials.

    Keys in the file stay in memory. Runs the exec plugin that the file names. Refreshed OIDC tokens are written back,
    as kubectl does.
    """
    from kubernetes import config
    from kubernetes.client.configuration import Configuration
    from kubernetes.config.config_exception import ConfigException

    if not Path(kubeconfig).is_file():
        raise bad_input(kubeconfig, "there is no such kubeconfig", "set cluster.kubeconfig in the inventory")
    refuse_untrusted_file(Path(kubeconfig))  # an exec plugin that it names would be run
    client: Any = config  # untyped
    configuration: Any = Configuration()
    configuration.connection_pool_maxsize = _POOL_SIZE
    configuration.keep_alive = True
    try:
        with keys_in_memory(config.kube_config):
            client.load_kube_config(kubeconfig, context, client_configuration=configuration)
    except ConfigException as error:
        raise _bad_kubeconfig(kubeconfig, context, str(error)) from error
    except Exception as error:  # errors of the client's YAML, base64 and certificate reading
        raise bad_input(kubeconfig, f"it cannot be read as a kubeconfig: {_first_line(error)}") from error
    _check(kubeconfig, configuration)
    for secret in (configuration.password, *configuration.api_key.values()):
        register_secret((secret or "").removeprefix("Bearer "))
    return configuration


def _check(kubeconfig: str, configuration: Any) -> None:
    parts = urlsplit(configuration.host)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise bad_input(kubeconfig, f"the cluster's server {configuration.host!r} is not a URL")
    for path in (configuration.ssl_ca_cert, configuration.cert_file, configuration.key_file):
        if path and not Path(path).is_file():
            raise bad_input(kubeconfig, f"it names {path}, which does not exist")
        if path and not path.startswith("/proc/self/fd/"):  # of memory_file
            refuse_untrusted_file(Path(path))
    if parts.scheme == "https" and not configuration.api_key and not configuration.cert_file:
        raise NodefallError(
            f"{kubeconfig}: the context's user gives no credentials",
            hint="check that user, and that its exec plugin runs: kubectl --kubeconfig FILE get nodes",
        )
    # Like kubectl, go to loopback directly even if the environment names a proxy.
    if parts.hostname in ("localhost", "127.0.0.1", "::1") and configuration.proxy in getproxies().values():
        configuration.proxy = None


def connection_risks(configuration: Any) -> tuple[str, ...]:
    """What weakens the connection to the API server, for people."""
    risks = []
    if not configuration.verify_ssl and urlsplit(configuration.host).scheme == "https":
        risks.append("the API server's certificate is not verified (insecure-skip-tls-verify in the kubeconfig)")
    if configuration.proxy and configuration.proxy in getproxies().values():
        proxy = urlsplit(configuration.proxy)
        risks.append(f"the API server is reached through the proxy {proxy.hostname or '?'} of the environment")
    return tuple(risks)


def _bad_kubeconfig(kubeconfig: str, context: str | None, message: str) -> BadInput:
    """The error for a kubeconfig; for an unknown context its hint names the known ones."""
    known = _contexts(kubeconfig)
    if context is None or context in known or not known:
        return bad_input(kubeconfig, _first_line(message))
    near = get_close_matches(context, known, 1)
    hint = f"did you mean {near[0]!r}?" if near else "it has " + ", ".join(known)
    return bad_input(kubeconfig, f"it has no context {context!r}", hint)


def _contexts(kubeconfig: str) -> list[str]:
    from kubernetes.config import kube_config
    from kubernetes.config.config_exception import ConfigException

    client: Any = kube_config  # untyped
    try:
        contexts = client.KubeConfigMerger(kubeconfig).config.value.get("contexts") or []
        return [str(c["name"]) for c in contexts]
    except (ConfigException, AttributeError, TypeError, KeyError):  # only for a hint
        return []


def _first_line(error: object) -> str:
    return (str(error) or type(error).__name__).splitlines()[0]
