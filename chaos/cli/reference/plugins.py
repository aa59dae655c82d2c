"""Lists the plug-ins of other distributions, and checks whether they keep their contract."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from chaos.cli.output import echo, print_document
from chaos.core.errors import Exit, PluginError, UsageError
from chaos.core.outside import CONTRACT, Origin, load_point, outside_points, unstated
from chaos.core.registry import Group
from chaos.core.text import align_columns, count_of
from chaos.testing.installed import installed_breaches

_TITLES = ("KIND", "NAME", "DISTRIBUTION", "VERSION", "CONTRACT")


@dataclass(frozen=True, slots=True)
class _Installed:
    """An entry point; ``problem``: why it cannot be loaded, and ``plugin`` is None then."""

    origin: Origin
    plugin: Any
    problem: str = ""

    @property
    def name(self) -> str:
        return str(getattr(self.plugin, "name", self.origin.entry))

    @property
    def kind(self) -> str:
        return self.origin.group.removeprefix("nodefall.")


def _installed() -> Iterator[_Installed]:
    for group in Group:
        for origin, point in outside_points(group):
            try:
                yield _Installed(*load_point(origin, point))
            except PluginError as error:
                yield _Installed(origin, None, error.message)


def _warnings(found: list[_Installed]) -> list[str]:
    """One for each module without a version of the contract."""
    silent = [each.origin for each in found if not each.problem and each.origin.contract is None]
    return list(dict.fromkeys(f"warning: {unstated(origin)}" for origin in silent))


def list_plugins(as_json: bool) -> None:
    """Print the plug-ins, and on stderr what is wrong with those that cannot be loaded."""
    found = list(_installed())
    if as_json:
        print_document({"contract": CONTRACT, "plugins": [_row(each) for each in found]})
    elif found:
        rows = [
            [each.kind, each.name, each.origin.distribution, each.origin.version, str(each.origin.contract or "-")]
            for each in found
        ]
        echo(*align_columns([list(_TITLES), *rows]))
    else:
        echo("no plug-ins of other distributions are installed")
    echo(*_warnings(found), *(f"error: {each.problem}" for each in found if each.problem), err=True)


def _row(each: _Installed) -> dict[str, Any]:
    origin = each.origin
    return {
        "kind": each.kind,
        "name": each.name,
        "distribution": origin.distribution,
        "version": origin.version,
        "contract": origin.contract,
        "object": origin.value,
        "problem": each.problem or None,
    }


def check(distribution: str) -> int:
    """Check the plug-ins of a distribution; the exit code. Raises UsageError if it has none."""
    wanted = _normal(distribution)
    found = [each for each in _installed() if _normal(each.origin.distribution) == wanted]
    if not found:
        raise UsageError(
            f"no plug-ins of a distribution {distribution!r} are installed", hint="list them with nodefall plugins"
        )
    failures = [
        failure
        for each in found
        for failure in ([each.problem] if each.problem else installed_breaches(each.origin, each.plugin))
    ]
    echo(*_warnings(found), *(f"error: {failure}" for failure in failures), err=True)
    if failures:
        return Exit.VIOLATED
    echo(f"{found[0].origin.owner}: {count_of(len(found), 'plug-in')} checked, no breach")
    return Exit.HELD


def _normal(distribution: str) -> str:
    return distribution.lower().replace("_", "-").replace(".", "-")
