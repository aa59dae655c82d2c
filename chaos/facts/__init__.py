"""Facts of hosts. One file per fact, each exposes ``FACT``: a command, and the parser of its output."""
