# Prints the time by the host's clock, in milliseconds since the epoch.
[DateTimeOffset]::UtcNow.ToUnixTimeMilliseconds()
