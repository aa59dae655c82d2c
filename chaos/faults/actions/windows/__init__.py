"""Windows forms of actions: one file per action, named like the action."""
