"""Commands that print what documents and plug-ins say, without a cluster."""
