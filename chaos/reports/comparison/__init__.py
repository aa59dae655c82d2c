"""What happened, beside what was predicted or happened before: rows, the surprise, and reports. Pure."""
