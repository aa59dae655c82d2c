"""Wiring: from an experiment and an inventory to a run on an open cluster. Neither prints nor exits."""
