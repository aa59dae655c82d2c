"""``nodefall new``: the skeleton of an experiment."""
