"""A lab within the process of its client: the same handlers and programs, without connections and without wall time."""
