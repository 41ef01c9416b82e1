"""The commands of the program: one module each, one for the steps, and one for the experiments."""

#: The modules of the commands, and what they call them if not command, by name of the command:
#: first what people ask, then the steps in the order of the data flow, then the experiments.
COMMANDS = {
    "pairs": "pairs",
    "clusters": "clusters",
    "query": "query",
    "show": "show",
    "report": "report",
    "folders": "folders",
    "passages": "passages",
    "accept": "query:accept",
    "spark": "spark",
    "mcp": "mcp",
    "shingle": "steps:shingle",
    "signatures": "steps:signatures",
    "index": "steps:index",
    "accuracy": "experiments:accuracy",
    "timing": "experiments:timing",
    "curve": "experiments:curve",
}
