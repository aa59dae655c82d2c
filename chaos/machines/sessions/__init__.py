"""Code that sessions of all transports share: settings, host keys, processes on the host, scripts with a known end."""
