"""`lshdup show`."""
