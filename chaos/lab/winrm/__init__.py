"""The WS-Management service of a simulated Windows machine."""
