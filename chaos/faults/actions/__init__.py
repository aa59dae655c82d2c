"""Actions: one file each, named like the action, or with others of its family; files with an underscore are shared."""
