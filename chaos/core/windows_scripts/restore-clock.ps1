# Sets the clock right by the mark of set-clock, and then starts services that correct the clock.
# Right when it runs twice, and after other changes of the clock. After a boot only the synchronization knows the time.
# Resynchronization fails without a time source, which leaves the clock as it is.
# Parameters: services (names), until_right (whether a clock that is still wrong is exit code 1)
$mark = 'C:\ProgramData\nodefall-clock'
$boot = (Get-ItemProperty 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters').BootId
$uptime = [Diagnostics.Stopwatch]::GetTimestamp() * 1000 / [Diagnostics.Stopwatch]::Frequency
$started = [long]([DateTimeOffset]::UtcNow.ToUnixTimeMilliseconds() - $uptime)
if (Test-Path $mark) {
    $before = (Get-Content $mark).Split(' ')
    if ([int]$before[0] -eq $boot) {
        Set-Date -Adjust ([TimeSpan]::FromMilliseconds([long]$before[1] - $started)) | Out-Null
        Remove-Item $mark
    } else {
        Start-Service -Name 'w32time'
        & 'C:\Windows\System32\w32tm.exe' /resync /force | Out-Null
        if ($LASTEXITCODE -eq 0) { Remove-Item $mark }
    }
}
foreach ($name in $p.services) {
    Start-Service -Name $name
    if ($name -eq 'w32time') { & 'C:\Windows\System32\w32tm.exe' /resync /force | Out-Null }
}
if ($p.until_right -and (Test-Path $mark)) { exit 1 }
exit 0
