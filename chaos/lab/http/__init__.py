"""The HTTP servers of the simulated cluster: the API server, and the ports of its components."""
