"""What a cluster and its hosts can and cannot be tested for: checks of what was gathered before any fault."""
