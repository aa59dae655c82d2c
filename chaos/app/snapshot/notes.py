"""What a snapshot lacks, and why. An anonymized one says it without names, addresses and messages of others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from chaos.cluster.errors import KubeRejected, KubeUnreachable
from chaos.cluster.snapshot.document import Missing
from chaos.core.errors import NodefallError

_SHOWN = 8
_REASONS = {401: "not authenticated", 403: "not permitted", 404: "not served by this cluster"}


class Notes:
    """Collects what is missing. ``hide`` replaces names; None in a snapshot that is not anonymized."""

    def __init__(self, hide: Callable[[str], str] | None = None) -> None:
        self._hide = hide
        self.missing: list[Missing] = []

    def add(self, what: str, why: str, *, detail: str = "", is_object: bool = False) -> None:
        """Note what is missing, in words of nodefall; ``detail`` is of the cluster."""
        shown = f"{why} ({detail})" if detail and self._hide is None else why
        self.missing.append(Missing(what, shown, is_object))

    def add_named(self, what: str, name: str, why: str) -> None:
        """Note what is missing of something with a name of the cluster."""
        self.missing.append(Missing(f"{what} {self._hide(name) if self._hide else name}", why))

    def add_error(self, what: str, error: NodefallError, effect: str, *, is_object: bool = False) -> None:
        """Note an error of the API server."""
        self.add(what, f"{_reason(error)}; {effect}", detail=error.message, is_object=is_object)

    def add_errors(self, what: str, errors: Iterable[tuple[str, NodefallError]], effect: str) -> None:
        """Note errors of several nodes: one line for each reason."""
        by_reason: dict[str, list[tuple[str, NodefallError]]] = {}
        for node, error in errors:
            by_reason.setdefault(_reason(error), []).append((node, error))
        for reason, found in sorted(by_reason.items()):
            names = [self._hide(node) if self._hide else node for node, _ in found]
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            self.add(f"{what} of {', '.join(names[:_SHOWN])}{more}", f"{reason}; {effect}", detail=found[0][1].message)

    def add_unknown_fields(self, plural: str, unknown: Counter[str]) -> None:
        """Note fields that this version of nodefall does not know."""
        if unknown:
            names = sorted(unknown)
            shown = ", ".join(names[:_SHOWN]) + (f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else "")
            self.add(f"{len(names)} unknown fields of {plural}", "not known to this version", detail=shown)


def _reason(error: NodefallError) -> str:
    if isinstance(error, KubeRejected):
        return _REASONS.get(error.status, f"status {error.status}" if error.status != 200 else "invalid response")
    return f"not reachable ({error.kind})" if isinstance(error, KubeUnreachable) else "not readable"
