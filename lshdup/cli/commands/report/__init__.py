"""`lshdup report`."""
