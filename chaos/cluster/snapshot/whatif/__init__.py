"""Changes of a snapshot that answer the next question: one file per key of ``--what-if``. Pure."""
