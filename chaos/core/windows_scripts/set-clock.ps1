# Sets the clock ahead, or back for a negative number. Writes the mark that read-clock describes before.
# Parameters: seconds
$mark = 'C:\ProgramData\nodefall-clock'
$boot = (Get-ItemProperty 'HKLM:\SYSTEM\CurrentControlSet\Control\Session Manager\Memory Management\PrefetchParameters').BootId
$uptime = [Diagnostics.Stopwatch]::GetTimestamp() * 1000 / [Diagnostics.Stopwatch]::Frequency
$started = [long]([DateTimeOffset]::UtcNow.ToUnixTimeMilliseconds() - $uptime)
if (-not (Test-Path $mark)) { Set-Content $mark "$boot $started $($p.seconds)" -Encoding Ascii }
Set-Date -Adjust ([TimeSpan]::FromSeconds($p.seconds)) | Out-Null
