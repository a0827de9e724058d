"""What runs inside a sandbox, with the standard library alone; nothing here knows of right answers."""
