"""``grace=NAMESPACE/NAME:SECONDS``: the terminationGracePeriodSeconds of a workload's pods."""

from __future__ import annotations

from chaos.cluster.snapshot.contents import Contents
from chaos.cluster.snapshot.whatif.change import Apply, ChangeKind, split_workload, whole_seconds_of
from chaos.cluster.snapshot.whatif.workloads import names, pod_specs, workload

_SYNTAX = "NAMESPACE/NAME:SECONDS"


def _parse(text: str) -> Apply:
    subject, value = split_workload(text, _SYNTAX)
    seconds = whole_seconds_of(value)

    def apply(contents: Contents) -> str:
        before = set()
        for spec in pod_specs(contents, workload(contents, subject)):
            before.add(spec.get("terminationGracePeriodSeconds", 30))
            spec["terminationGracePeriodSeconds"] = seconds
        shown = ", ".join(f"{each} s" for each in sorted(before))
        return f"pods of {subject} have {seconds} s to end, instead of {shown}"

    return apply


KIND = ChangeKind("grace", _SYNTAX, "terminationGracePeriodSeconds of a workload's pods", _parse, names)
