"""The commands of the program: one module each, and one for the three steps."""

#: The modules of the commands, and what they call them if not command, by name of the command:
#: first what people ask, then the steps in the order of the data flow, then the experiments.
COMMANDS = {
    "pairs": "pairs.command",
    "clusters": "clusters",
    "query": "query",
    "show": "show.command",
    "report": "report.command",
    "folders": "folders",
    "passages": "passages.command",
    "spark": "spark",
    "shingle": "steps:shingle",
    "signatures": "steps:signatures",
    "index": "steps:index",
    "accuracy": "accuracy",
    "timing": "timing",
    "curve": "curve",
}
