"""Loader of YAML files into models: the only code that reads YAML. It reports all problems, each with its position."""
