# Failsafe task: starts a service, again every 5 s while Windows refuses that or the service does not run.
# After 5 minutes it gives up until the next boot: what it needs may start after it.
# Parameters: service
for ($left = 60; $left -gt 0; $left -= 1) {
    if ((Get-Service -Name $p.service).Status -eq 'Running') { exit 0 }
    & 'C:\Windows\System32\sc.exe' start $p.service | Out-Null
    Start-Sleep -Seconds 5
}
exit 1
