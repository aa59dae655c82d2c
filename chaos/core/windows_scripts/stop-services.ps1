# Stops services in this order, each once the one before it has stopped. Fails if others that run depend on one.
# sc.exe returns when a service has received the control; this waits until it has stopped.
# Parameters: services (names)
foreach ($name in $p.services) { Stop-Service -Name $name }
