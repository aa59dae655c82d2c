"""What was lost in a run: one file per kind of finding."""
