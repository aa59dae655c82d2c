"""Queueing disciplines of the host's network interfaces, as tc(8) lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field

from chaos.facts._rows import json_rows
from chaos.model.command import HostCommand
from chaos.model.document import Model
from chaos.model.fact import HostFact

DEFAULT = "0:"  # handle of a queueing discipline that the kernel has made by itself


class QdiscsParams(Model):
    interface: str | None = Field(None, pattern=r"^[\w.@:-]{1,15}$", description="only of this one; default: of all")


class Qdiscs(HostFact):
    """Mapping of interfaces to their queueing disciplines: ``{"eth0": [{"kind": "fq_codel", "handle": "0:"}]}``.

    In tc's order and with all that it prints, but for the number of references. Those with handle ``0:`` are the
    kernel's own default, whose options cannot be changed. They are left out: some follow from the MTU at the time when
    the kernel made it (fq_codel_init, net/sched/sch_fq_codel.c).
    """

    name = "qdiscs"
    summary = "queueing disciplines of network interfaces"
    params = QdiscsParams
    options: QdiscsParams

    def command_for(self, known: Mapping[str, Any]) -> HostCommand:  # noqa: ARG002 - no needs
        interface = self.options.interface
        # As root: tc is in /sbin, which other users do not search.
        return HostCommand(("tc", "-j", "qdisc", "show", *(("dev", interface) if interface else ())))

    def parse(self, stdout: str, exit_code: int) -> dict[str, list[dict[str, Any]]]:
        if exit_code:
            raise ValueError("tc did not list the queueing disciplines (package iproute2)")
        found: dict[str, list[dict[str, Any]]] = {}
        for row in json_rows(stdout):
            interface = str(row.pop("dev", self.options.interface))  # not printed where it was asked for
            row.pop("refcnt", None)
            if row.get("handle") == DEFAULT:
                row.pop("options", None)
            found.setdefault(interface, []).append(row)
        return found


FACT = Qdiscs()
