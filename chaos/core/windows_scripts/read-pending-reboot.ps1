# Prints "MARK True" or "MARK False" for each registry key that says that updates wait for a restart.
$root = 'HKLM:\SOFTWARE\Microsoft\Windows\CurrentVersion\'
"PackagesPending $(Test-Path ($root + 'Component Based Servicing\PackagesPending'))"
"RebootInProgress $(Test-Path ($root + 'Component Based Servicing\RebootInProgress'))"
"RebootPending $(Test-Path ($root + 'Component Based Servicing\RebootPending'))"
"RebootRequired $(Test-Path ($root + 'WindowsUpdate\Auto Update\RebootRequired'))"
exit 0
