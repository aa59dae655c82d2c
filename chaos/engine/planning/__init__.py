"""Planning: experiment, inventory, snapshot of the cluster and a seed in, plan out. Pure."""
