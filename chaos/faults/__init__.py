"""Actions that make a node fail, and the readings of hosts that they need."""
