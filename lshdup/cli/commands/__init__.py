"""The commands of the program, one module each."""

#: The modules of the commands, by name of the command in the order of the data flow. A command is
#: loaded when it is used.
COMMANDS = {
    "shingle": "shingle",
    "signatures": "signatures",
    "index": "index",
    "query": "query",
    "pairs": "pairs.command",
    "clusters": "clusters",
    "folders": "folders",
    "passages": "passages.command",
    "show": "show.command",
    "report": "report",
    "accuracy": "accuracy",
    "timing": "timing",
    "curve": "curve",
}
