"""Commands that run experiments: ``run``, ``plan``, ``demo``, ``rehearse``, ``compare``; and the progress of a run."""
