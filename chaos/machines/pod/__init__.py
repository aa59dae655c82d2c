"""Transport ``pod``: privileged pods of nodefall, in which commands enter the namespaces of their host's PID 1."""
