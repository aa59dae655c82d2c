"""Planning: makes a plan from an experiment, an inventory, a cluster snapshot and a seed. Pure."""
