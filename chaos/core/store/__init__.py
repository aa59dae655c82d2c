"""Run directories, the journal and recordings."""
