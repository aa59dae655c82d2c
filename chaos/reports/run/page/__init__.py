"""The HTML report: what its page holds, and the data of its script."""
