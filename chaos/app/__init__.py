"""The application: wires inventories, experiments, plans and runs together. Never prints, never exits."""
