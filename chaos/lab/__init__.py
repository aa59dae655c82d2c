"""The simulated cluster: a stranger on loopback. Imports nothing of the rest of ``chaos``.

pyproject.toml has its layers.
"""
