"""A Windows machine: registry, services, event log, tasks, firewall, power."""
