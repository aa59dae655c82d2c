# Starts a service and waits until it runs. The time service then corrects what is left of an offset: without a time
# source that fails, which leaves the clock as it is.
# Parameters: service
Start-Service -Name $p.service
if ($p.service -eq 'w32time') { & 'C:\Windows\System32\w32tm.exe' /resync /force | Out-Null }
exit 0
