"""What the use cases share: connections, inventories, locks and logs."""
