"""Real programs read what nodefall writes. ``.ci/run`` installs those of npm, and names their folder."""
