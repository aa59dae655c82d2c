"""Verification of the connection to the API server."""

from __future__ import annotations

from collections.abc import Iterator

from chaos.preflight.check import Check, Diagnosis, ok, warning
from chaos.preflight.observations import ClusterObservations


class ApiConnection(Check):
    """Without verification, whoever is on the way can read the credentials and forge the API server's answers."""

    name = "api-connection"
    summary = "the API server's certificate is verified, and no proxy of the environment is used"

    def run(self, observations: ClusterObservations) -> Iterator[Diagnosis]:
        for risk in observations.connection_risks:
            yield warning(risk, "name its CA in the kubeconfig, and set NO_PROXY for it")
        if not observations.connection_risks:
            yield ok("it is verified")


CHECK = ApiConnection()
