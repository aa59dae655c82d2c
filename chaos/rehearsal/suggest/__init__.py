"""``nodefall suggest``: what of a cluster is fragile, by its snapshot and by rehearsals on copies. Pure."""
