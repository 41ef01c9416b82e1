"""`lshdup pairs`."""
