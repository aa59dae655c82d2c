# Stops a service, waits until it has stopped, and starts it. sc.exe start is refused (1056) while a service stops.
# Parameters: service
Restart-Service -Name $p.service
