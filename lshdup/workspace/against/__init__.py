"""`--against OTHER`: two collections side by side, the pairs across them, and groups of one."""
