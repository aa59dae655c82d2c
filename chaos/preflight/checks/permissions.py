"""Rights on the cluster, by SelfSubjectAccessReview."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, experiment_refusal, ok
from chaos.preflight.observations import ClusterObservations


class Permissions(Check):
    """A run that lacks a right in its midst could not be undone either."""

    name = "permissions"
    summary = "the credentials of the kubeconfig may do all that the experiments need"
    is_final = True

    def run(self, signs: ClusterObservations) -> Iterator[Diagnosis]:
        lacking = [use for use in signs.experiments if use.missing_permissions]
        for use in lacking:
            rights = "; ".join(str(right) for right in use.missing_permissions)
            mend = "nodefall rbac EXPERIMENT prints the roles that are needed, for kubectl apply"
            yield experiment_refusal(use, f"the credentials of the kubeconfig may not {rights}", mend)
        if signs.experiments and not lacking:
            yield ok("they may do all that is needed")


CHECK = Permissions()
