"""Verdicts from timelines: held only with proof, violated only after a fault that is proven."""
