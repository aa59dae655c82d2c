"""Runs a game day on many clusters at once: a Job in each, watched from one process that may end at any time."""
