"""Plans and runs an experiment, and judges recordings."""
