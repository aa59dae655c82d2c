"""Runs in the process of a simulated cluster: the engine, the judge and the plug-ins of every run, and no waiting."""
