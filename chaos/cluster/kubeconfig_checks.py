"""Checks for errors in the entries of a context for which kubectl would refuse them.

Source: k8s.io/client-go tools/clientcmd/validation.go.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from chaos.cluster.kubeconfig import ClusterEntry, ContextEntry, ExecEntry, UserEntry
from chaos.core.files import missing_file_hint

_EXEC_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
_INTERACTIVE_MODES = ("Never", "IfAvailable", "Always")
# What has replaced the kinds of auth-provider.
_REPLACEMENTS = {
    "gcp": "gke-gcloud-auth-plugin",
    "azure": "kubelogin convert-kubeconfig",
    "oidc": "the exec plug-in kubectl oidc-login",
    "openstack": "the exec plug-in client-keystone-auth",
}
_HOST = re.compile(r"[\w.:-]+")
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")  # of which no header may have any


def find_problems(context: ContextEntry, cluster: ClusterEntry, user: UserEntry) -> Iterator[tuple[str, str]]:
    """The errors, each with a hint or "". Settings for TLS are checked only if TLS is used."""
    yield from _cluster_problems(context.cluster, cluster)
    yield from _user_problems(context.user, user)
    if cluster.server.lower().startswith("https:"):
        yield from _trust_problems(context.cluster, cluster)
        yield from _token_problems(context.user, user)


def _cluster_problems(name: str, cluster: ClusterEntry) -> Iterator[tuple[str, str]]:
    if not cluster.server:
        yield f"the cluster {name!r} has no server", ""
    if cluster.certificate_authority and cluster.certificate_authority_data:
        yield from _both(f"cluster {name!r}", "certificate-authority")
    yield from _missing_file("certificate-authority", cluster.certificate_authority)
    if cluster.tls_server_name and not _is_host(cluster.tls_server_name):
        yield f"the tls-server-name of the cluster {name!r} is not the name of a host", ""


def has_control_character(text: str) -> bool:
    """Whether no header may have it."""
    return _UNPRINTABLE.search(text) is not None


def _is_host(name: str) -> bool:
    try:
        name.encode("idna")
    except UnicodeError:
        return False
    return _HOST.fullmatch(name) is not None


def _trust_problems(name: str, cluster: ClusterEntry) -> Iterator[tuple[str, str]]:
    if cluster.insecure_skip_tls_verify and (cluster.certificate_authority or cluster.certificate_authority_data):
        yield f"the cluster {name!r} has both insecure-skip-tls-verify and certificate-authority", "remove one of them"


def _token_problems(name: str, user: UserEntry) -> Iterator[tuple[str, str]]:
    if user.token_file and (user.username or user.password):
        yield f"the user {name!r} has both tokenFile and username", "remove one of them"
    if has_control_character(user.token):
        hint = "write it without a line break: in YAML with |- instead of |"
        yield f"the token of the user {name!r} has a control character", hint


def _user_problems(name: str, user: UserEntry) -> Iterator[tuple[str, str]]:
    if user.auth_provider is not None:
        replacement = _REPLACEMENTS.get(user.auth_provider.name, "an exec plug-in")
        message = f"the user {name!r} has auth-provider {user.auth_provider.name!r}, which nodefall does not have"
        yield message, f"use {replacement} instead"
    for key in ("certificate", "key"):
        path, data = getattr(user, f"client_{key}"), getattr(user, f"client_{key}_data")
        if path and data:
            yield from _both(f"user {name!r}", f"client-{key}")
    has_key = user.client_key or user.client_key_data
    if (user.client_certificate or user.client_certificate_data) and not has_key:
        yield f"the user {name!r} has client-certificate without client-key", "add client-key or client-key-data"
    if user.token and (user.username or user.password):
        yield f"the user {name!r} has both token and username", "remove one of them"
    if (user.impersonate_uid or user.impersonate_groups or user.impersonate_extra) and not user.impersonate:
        yield f"the user {name!r} has as-uid, as-groups or as-user-extra without as", "add as: the user's name"
    if user.client_certificate or user.client_certificate_data:
        yield from _missing_file("client-certificate", user.client_certificate)
        yield from _missing_file("client-key", user.client_key)
    yield from _bad_values(name, user)
    if user.exec is not None:
        yield from _exec_problems(name, user.exec)


def _both(what: str, key: str) -> Iterator[tuple[str, str]]:
    yield f"the {what} has both {key} and {key}-data", "remove one of them"


def _missing_file(key: str, path: str) -> Iterator[tuple[str, str]]:
    if path and not Path(path).is_file():
        yield f"its {key} {path} does not exist", missing_file_hint(Path(path))
    elif path and not os.access(path, os.R_OK):
        yield f"its {key} {path} cannot be read", ""


def _bad_values(name: str, user: UserEntry) -> Iterator[tuple[str, str]]:
    """Characters that an HTTP header cannot contain."""
    texts = [("as", user.impersonate), ("as-uid", user.impersonate_uid)]
    texts += [("as-groups", text) for text in user.impersonate_groups]
    texts += [("as-user-extra", text) for values in user.impersonate_extra.values() for text in values]
    for key in dict.fromkeys(key for key, text in texts if _UNPRINTABLE.search(text)):
        yield f"the {key} of the user {name!r} has a control character", "write it without a line break"


def _exec_problems(name: str, plugin: ExecEntry) -> Iterator[tuple[str, str]]:
    what = f"the exec plug-in of the user {name!r}"
    if not plugin.command:
        yield f"{what} has no command", ""
    if plugin.api_version not in _EXEC_VERSIONS:
        yield f"{what} has the apiVersion {plugin.api_version!r}", f"use one of {', '.join(_EXEC_VERSIONS)}"
    elif plugin.interactive_mode not in _INTERACTIVE_MODES and (
        plugin.interactive_mode or plugin.api_version == _EXEC_VERSIONS[0]
    ):
        yield (
            f"{what} has the interactiveMode {plugin.interactive_mode!r}",
            f"use one of {', '.join(_INTERACTIVE_MODES)}",
        )
    if any(not each.name or "\0" in each.name + each.value or "=" in each.name for each in plugin.env):
        yield f"{what} has an env entry without a usable name", ""
    if "\0" in "".join((plugin.command, *plugin.args)):
        yield f"{what} has a NUL in its command", ""
