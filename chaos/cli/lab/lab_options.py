"""The options of ``nodefall lab up``, applied to the lab of an inventory."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import ValidationError

from chaos.core.errors import UsageError
from chaos.core.inventory import Lab
from chaos.documents.problems import did_you_mean

_FIELDS = {"nodes": "workers", "kubernetes": "kubernetes", "systemd": "systemd", "seed": "seed"}
_DEFECTS = {"inhibitor-lost-after-cancel": "inhibitorLostAfterCancel"}


def build_lab(source: str, lab: Lab | None, options: Mapping[str, Any]) -> Lab:
    """``lab`` with ``options`` applied; None stands for an option that was not given. Raises UsageError."""
    if lab is None:
        raise UsageError(f"{source} describes a cluster, not a lab", hint="see hosts/lab.yaml")
    changes: dict[str, Any] = {f: options[o] for o, f in _FIELDS.items() if options.get(o) is not None}
    if options.get("zones") is not None:
        changes["zones"] = _zones(options["zones"])
    changes |= _defects(options.get("defects") or ())
    changes["breakages"] = [*lab.breakages, *(options.get("broken") or ())]
    try:
        return Lab.model_validate(lab.model_dump(by_alias=True) | changes)
    except ValidationError as error:
        first = error.errors()[0]
        field = str(first["loc"][0])
        raise UsageError(f"{_option(field)}: {first['msg'].removeprefix('Value error, ')}") from error


def refuse_with_snapshot(options: Mapping[str, Any]) -> None:
    """Raises UsageError for options of what a snapshot says."""
    given = [f"--{name}" for name in ("nodes", "zones", "kubernetes", "systemd") if options.get(name) is not None]
    if given:
        raise UsageError(f"{', '.join(given)} cannot be combined with --snapshot", hint="it has them of the cluster")


def _zones(text: str) -> list[str]:
    zones = [zone.strip() for zone in text.split(",")]
    if not all(zones) or len(set(zones)) < len(zones):
        raise UsageError(f"--zones: {text!r} is not a list of different names", hint="write --zones a,b,c")
    return zones


def _defects(texts: Iterable[str]) -> dict[str, str]:
    found = {}
    for text in texts:
        name, sign, when = text.partition("=")
        if name not in _DEFECTS or not sign:
            known = did_you_mean(name, _DEFECTS)
            raise UsageError(
                f"--kubelet-defects: unknown defect {text!r}", hint=f"{known}, with =always, =never or =seeded"
            )
        found[_DEFECTS[name]] = when
    return found


def _option(field: str) -> str:
    if field in _DEFECTS.values():
        return "--kubelet-defects"
    return next((f"--{option}" for option, name in _FIELDS.items() if name == field), field)
