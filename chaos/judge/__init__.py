"""Timelines to verdicts: held only with proof, violated only for a fault that happened."""
