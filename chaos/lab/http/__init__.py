"""What the simulated cluster answers over HTTP: the API server, and the ports of its components."""
