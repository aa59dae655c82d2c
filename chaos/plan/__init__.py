"""Experiment + Inventory + what the cluster looks like + a seed -> Plan. Pure."""
