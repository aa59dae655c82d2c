"""Whether an experiment's targets can be chosen at all."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.check import Check, Diagnosis, ok, refused
from chaos.doctor.signs import Signs


class Targets(Check):
    """Enough nodes that fit, are Ready and not protected, within the inventory's limits."""

    name = "targets"
    summary = "the experiment's targets can be chosen within the limits of the inventory"
    final = True
    fit = True

    def look(self, signs: Signs) -> Iterator[Diagnosis]:
        unfit = [use for use in signs.uses if use.unfit]
        for use in unfit:
            says, mend = use.unfit or ("", "")
            yield refused(use, f"{use.name}: {says}", mend)
        if signs.uses and not unfit:
            yield ok("they can be chosen")


CHECK = Targets()
