"""Windows forms of actions, by family; a form has the name of its action."""
