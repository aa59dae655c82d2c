"""YAML in, records out: experiments, inventories, game days and fleets."""
