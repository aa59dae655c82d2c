"""Machines behind the nodes: transports, power control, inspection."""
