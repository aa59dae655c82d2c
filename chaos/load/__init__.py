"""YAML to model: the only place that knows YAML. Every problem is told at once, with its place in the file."""

from chaos.load.experiment import load_experiment
from chaos.load.inventory import load_inventory
from chaos.load.manifests import load_manifests

__all__ = ["load_experiment", "load_inventory", "load_manifests"]
