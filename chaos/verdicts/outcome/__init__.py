"""Measures of what a fault did to a cluster, their bands over many outcomes, and predictions."""
