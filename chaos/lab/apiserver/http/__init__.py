"""What the simulated cluster shows on loopback: API server, kubelet ports, Redfish endpoint, SSH."""
