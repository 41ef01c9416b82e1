"""The commands of the program, one module each."""

#: Names of commands in the order of the data flow. A command is loaded when it is used.
COMMANDS = (
    "shingle",
    "signatures",
    "index",
    "query",
    "pairs",
    "clusters",
    "show",
    "report",
    "accuracy",
    "timing",
    "curve",
)
