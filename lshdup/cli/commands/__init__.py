"""The commands of the program, one file each."""

#: In the order of the data flow; each is the module of its name, loaded when it is asked for.
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
