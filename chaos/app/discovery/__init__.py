"""What the Nodes of a cluster show of their machines, and the inventory that follows from it; pure."""
