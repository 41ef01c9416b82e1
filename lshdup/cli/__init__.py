"""The command line: main, options, console and output; the commands are in commands/."""
