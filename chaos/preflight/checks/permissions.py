"""Permissions of the credentials, by SelfSubjectAccessReview."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, experiment_refusal, ok
from chaos.preflight.observations import ClusterObservations


class Permissions(Check):
    """A run that lacks a permission halfway may not be able to undo its faults either."""

    name = "permissions"
    summary = "the kubeconfig's credentials have all permissions that the experiments need"
    is_final = True

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        incomplete = [each for each in observations.experiments if each.missing_permissions]
        for experiment in incomplete:
            missing = "; ".join(map(str, experiment.missing_permissions))
            hint = "run nodefall rbac EXPERIMENT for the roles that are needed, and kubectl apply them"
            yield experiment_refusal(experiment, f"the kubeconfig's credentials may not {missing}", hint)
        if observations.experiments and not incomplete:
            yield ok("they have all permissions")


CHECK = Permissions()
