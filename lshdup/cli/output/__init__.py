"""What is written to stdout: listings in each format, and their layout for people."""
