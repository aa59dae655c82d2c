"""A small Windows PowerShell 5.1: syntax, values, .NET types and cmdlets."""
