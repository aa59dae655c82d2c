# Failsafe task: deletes firewall rules of one name, again every 5 s until the registry has none; 5 minutes at most.
# netsh.exe exits with 1 where there is no such rule, and while the firewall starts: only the registry shows which.
# Parameters: rule (name)
for ($left = 60; $left -gt 0; $left -= 1) {
    $found = & 'C:\Windows\System32\reg.exe' query 'HKLM\SYSTEM\CurrentControlSet\Services\SharedAccess\Parameters\FirewallPolicy\FirewallRules' /f "Name=$($p.rule)|" /d
    if ($LASTEXITCODE -eq 1 -and $found) { exit 0 }
    & 'C:\Windows\System32\netsh.exe' advfirewall firewall delete rule "name=$($p.rule)" | Out-Null
    Start-Sleep -Seconds 5
}
exit 1
