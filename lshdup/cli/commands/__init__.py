"""The commands of the program, one module each."""

#: The modules of the commands, by name of the command: first what people ask, then the steps in
#: the order of the data flow, then the experiments. A command is loaded when it is used.
COMMANDS = {
    "pairs": "pairs.command",
    "clusters": "clusters",
    "query": "query",
    "show": "show.command",
    "report": "report.command",
    "folders": "folders",
    "passages": "passages.command",
    "spark": "spark",
    "shingle": "shingle",
    "signatures": "signatures",
    "index": "index",
    "accuracy": "accuracy",
    "timing": "timing",
    "curve": "curve",
}
