"""Rights on the cluster, by SelfSubjectAccessReview."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.doctor.check import Check, Diagnosis, ok, refused
from chaos.doctor.signs import Signs


class Permissions(Check):
    """A run that lacks a right in its midst could not be undone either."""

    name = "permissions"
    summary = "the credentials of the kubeconfig may do all that the experiments need"
    final = True

    def look(self, signs: Signs) -> Iterator[Diagnosis]:
        lacking = [use for use in signs.uses if use.lacking]
        for use in lacking:
            rights = "; ".join(str(right) for right in use.lacking)
            mend = "nodefall rbac EXPERIMENT prints the roles that are needed, for kubectl apply"
            yield refused(use, f"the credentials of the kubeconfig may not {rights}", mend)
        if signs.uses and not lacking:
            yield ok("they may do all that is needed")


CHECK = Permissions()
