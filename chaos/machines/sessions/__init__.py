"""What sessions of all transports share: settings, host keys, processes on the host, scripts that end as known."""
