"""Kubeconfig files as client-go reads them: their schema, several files merged, and the context that is used.

Source: k8s.io/client-go tools/clientcmd (api/v1/types.go, loader.go, client_config.go).
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import fields, replace

from chaos.cluster.go_yaml import load_yaml
from chaos.core.errors import BadInput, bad_input
from chaos.core.trusted_files import read_trusted

_Entry = TypeVar("_Entry")
_MAPS = ("clusters", "users", "contexts", "unknown")
_PATHS_OF_USER = ("client_certificate", "client_key", "token_file")
_MAX_BYTES = 16 << 20  # of a file


class ClusterEntry(Struct, frozen=True, rename="kebab"):
    """The address of an API server, and how to verify it."""

    server: str = ""
    tls_server_name: str = ""
    insecure_skip_tls_verify: bool = False
    certificate_authority: str = ""
    certificate_authority_data: str = ""
    proxy_url: str = ""
    disable_compression: bool = False
    extensions: list[dict[str, Any]] = []


class EnvironmentVariable(Struct, frozen=True):
    name: str = ""
    value: str = ""


class ExecEntry(Struct, frozen=True, rename="camel"):
    """A program that prints credentials."""

    api_version: str = ""
    command: str = ""
    args: list[str] = []
    env: list[EnvironmentVariable] = []
    install_hint: str = ""
    provide_cluster_info: bool = False
    interactive_mode: str = ""


class ProviderEntry(Struct, frozen=True):
    """A kind of credentials that client-go had built in."""

    name: str = ""
    config: dict[str, Any] = {}


class UserEntry(Struct, frozen=True, rename="kebab"):
    """An identity, and whom it impersonates."""

    client_certificate: str = ""
    client_certificate_data: str = ""
    client_key: str = ""
    client_key_data: str = ""
    token: str = ""
    token_file: str = field(default="", name="tokenFile")
    impersonate: str = field(default="", name="as")
    impersonate_uid: str = field(default="", name="as-uid")
    impersonate_groups: list[str] = field(default_factory=list, name="as-groups")
    impersonate_extra: dict[str, list[str]] = field(default_factory=dict, name="as-user-extra")
    username: str = ""
    password: str = ""
    auth_provider: ProviderEntry | None = None
    exec: ExecEntry | None = None
    extensions: list[dict[str, Any]] = []


class ContextEntry(Struct, frozen=True):
    """A cluster and a user, by name."""

    cluster: str = ""
    user: str = ""
    namespace: str = ""
    extensions: list[dict[str, Any]] = []


class _NamedCluster(Struct):
    name: str = ""
    cluster: ClusterEntry = ClusterEntry()


class _NamedUser(Struct):
    name: str = ""
    user: UserEntry = UserEntry()


class _NamedContext(Struct):
    name: str = ""
    context: ContextEntry = ContextEntry()


class _File(Struct, rename="kebab"):
    kind: str = ""
    api_version: str = field(default="", name="apiVersion")
    clusters: list[_NamedCluster] = []
    users: list[_NamedUser] = []
    contexts: list[_NamedContext] = []
    current_context: str = ""
    preferences: dict[str, Any] = {}
    extensions: list[dict[str, Any]] = []


class Kubeconfig(Struct, frozen=True):
    """The merged files. ``unknown``: keys that nothing reads, in words, by the kind and name of their entry."""

    where: str
    clusters: dict[str, ClusterEntry] = {}
    users: dict[str, UserEntry] = {}
    contexts: dict[str, ContextEntry] = {}
    current_context: str = ""
    unknown: dict[tuple[str, str], list[str]] = {}

    @property
    def is_empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current_context)

    def context(self, name: str | None) -> ContextEntry:
        """The entry of a context, by default the current one. Raises BadInput, with the known ones."""
        chosen = name or self.current_context
        if not chosen:
            raise bad_input(self.where, "it has no current-context", "set cluster.context in the inventory")
        if chosen not in self.contexts:
            raise self._missing("context", chosen, self.contexts)
        return self.contexts[chosen]

    def cluster(self, name: str) -> ClusterEntry:
        """The entry of a cluster. Raises BadInput."""
        if name not in self.clusters:
            raise self._missing("cluster", name, self.clusters)
        return self.clusters[name]

    def user(self, name: str) -> UserEntry:
        """The entry of a user; without a name, an entry without credentials. Raises BadInput."""
        if name not in self.users and name:
            raise self._missing("user", name, self.users)
        return self.users.get(name, UserEntry())

    def _missing(self, kind: str, name: str, known: Iterable[str]) -> BadInput:
        near = get_close_matches(name, list(known), 1)
        hint = f"did you mean {near[0]!r}?" if near else f"it has {', '.join(known) or 'none'}"
        return bad_input(self.where, f"it has no {kind} {name!r}", hint)


def kubeconfig_files(text: str) -> list[Path]:
    """The files that ``text`` names, in the syntax of KUBECONFIG; "" means the files that kubectl would use."""
    if text and (Path(text).exists() or os.pathsep not in text):
        return [Path(text)]
    names = (text or os.environ.get("KUBECONFIG", "")).split(os.pathsep)
    if names == [""]:
        return [Path("~/.kube/config").expanduser()]
    return [Path(name) for name in dict.fromkeys(names) if name]


def read_kubeconfig(text: str) -> Kubeconfig:
    """The files that ``text`` names, merged: of entries of one name the first is taken. Raises BadInput.

    As kubectl, skips files that do not exist, unless the only one was named.
    """
    files = kubeconfig_files(text)
    if len(files) == 1 and text and not files[0].exists():
        raise bad_input(
            str(files[0]), "there is no such kubeconfig", "set cluster.kubeconfig in the inventory, or --kubeconfig"
        )
    found = [_parse(str(file), _read_file(file)) for file in files if file.exists()]
    merged = Kubeconfig(os.pathsep.join(map(str, files)))
    for each in reversed(found):
        maps = {name: getattr(merged, name) | getattr(each, name) for name in _MAPS}
        merged = replace(merged, current_context=each.current_context or merged.current_context, **maps)
    return merged


def _read_file(path: Path) -> bytes:
    """The content of a file that only trusted users may write. Raises BadInput."""
    try:
        return read_trusted(path, _MAX_BYTES)  # an exec plug-in that it names would be run
    except OSError as error:
        raise bad_input(str(path), f"it cannot be read: {error.strerror}") from error


def _parse(where: str, content: bytes) -> Kubeconfig:
    """One file; its paths are made absolute. Raises BadInput."""
    document = load_yaml(where, content)
    if document is None:
        return Kubeconfig(where)
    if not isinstance(document, dict):
        raise bad_input(where, "it is not a kubeconfig: it is not a mapping")
    try:
        file = msgspec.convert(document, _File)
    except msgspec.ValidationError as error:
        raise bad_input(where, f"it cannot be read as a kubeconfig: {error}") from error
    if file.kind not in ("", "Config") or file.api_version not in ("", "v1"):
        raise bad_input(where, f"it is not a kubeconfig: its kind is {file.kind} of {file.api_version or 'v1'}")
    folder = Path(where).absolute().parent
    return Kubeconfig(
        where,
        _by_name(where, "cluster", [(each.name, _resolve(each.cluster, folder)) for each in file.clusters]),
        _by_name(where, "user", [(each.name, _resolve_user(each.user, folder)) for each in file.users]),
        _by_name(where, "context", [(each.name, each.context) for each in file.contexts]),
        file.current_context,
        _unknown_keys(where, document),
    )


def _resolve(cluster: ClusterEntry, folder: Path) -> ClusterEntry:
    return replace(cluster, certificate_authority=_absolute(cluster.certificate_authority, folder))


def _resolve_user(user: UserEntry, folder: Path) -> UserEntry:
    """Make the paths of a user absolute, including an exec plug-in's, unless it is looked up in PATH."""
    plugin = user.exec
    if plugin and os.sep in plugin.command:
        plugin = replace(plugin, command=_absolute(plugin.command, folder))
    paths = {name: _absolute(getattr(user, name), folder) for name in _PATHS_OF_USER}
    return replace(user, exec=plugin, **paths)


def _absolute(path: str, folder: Path) -> str:
    return os.path.normpath(folder / path) if path else ""


def _by_name(where: str, kind: str, entries: Iterable[tuple[str, _Entry]]) -> dict[str, _Entry]:
    """Raises BadInput for a name that is used twice."""
    found: dict[str, _Entry] = {}
    for name, entry in entries:
        if name in found:
            raise bad_input(where, f"it has two entries of the {kind} {name!r}", "remove one of them")
        found[name] = entry
    return found


def _unknown_keys(where: str, document: Mapping[str, Any]) -> dict[tuple[str, str], list[str]]:
    """The keys that neither nodefall nor kubectl reads, by kind and name of the entry; ("", its path) for the file
    itself.
    """
    unknown = {("", where): [_describe(key, _File) for key in document if key not in _known(_File)]}
    for kind, plural, type_ in (("cluster", "clusters", ClusterEntry), ("user", "users", UserEntry)):
        for named in document.get(plural, []):
            entry = named.get(kind, {})
            found = [_describe(key, type_) for key in entry if key not in _known(type_)]
            plugin = entry.get("exec", {})
            found += [f"exec.{_describe(key, ExecEntry)}" for key in plugin if key not in _known(ExecEntry)]
            unknown[kind, str(named.get("name", ""))] = found
    return unknown


def _known(type_: type[Struct]) -> list[str]:
    return [each.encode_name for each in fields(type_)]


def _describe(key: str, type_: type[Struct]) -> str:
    near = get_close_matches(key, _known(type_), 1)
    return f"{key} (did you mean {near[0]}?)" if near else key
