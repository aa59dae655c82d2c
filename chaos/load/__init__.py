"""Loader of YAML files into models: the only code that reads YAML. It reports all problems, each with its position."""

from chaos.load.experiment import load_experiment
from chaos.load.inventory import load_inventory
from chaos.load.manifests import load_manifests

__all__ = ["load_experiment", "load_inventory", "load_manifests"]
