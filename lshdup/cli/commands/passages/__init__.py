"""`lshdup passages`."""
