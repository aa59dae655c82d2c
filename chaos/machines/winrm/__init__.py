"""WinRM: sessions over WS-Management, on pywinrm's Protocol. Imported when the first host needs it."""
