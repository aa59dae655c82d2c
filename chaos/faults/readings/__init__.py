"""Facts of hosts, by subject. Every ``HostFact`` at the top level of a module is one: a command and its parser."""
