"""The values of options that are one of a few words. A word is added here first."""

TOKENS = ("word", "symbols", "char", "terms", "ids")
HASHES = ("mix64", "poly31")
#: Schemes of signatures; "linear" is for experiments, not for a store.
SCHEMES = ("fast", "classic", "linear")
STORED_SCHEMES = SCHEMES[:2]
VERIFY = ("exact", "estimate")
MEASURES = ("jaccard", "containment")
SAME, MAIL_QUOTES = ("bytes", "text"), ("keep", "drop")
MARKUP = ("auto", "visible", "keep")  # of `--markup`
LINKAGES = ("representative", "single")
#: Rules of `--keep`, and what each keeps.
KEEP = {
    "shortest-path": "the shortest path (no name of a copy, then fewest folders and characters)",
    "first": "the first as DOCS were named",
    "central": "the most similar to all others of its group",
    "longest": "the longest",
    "shortest": "the shortest",
    "newest": "the newest",
    "oldest": "the oldest",
    "path-order": "the first in byte order of the names",
}
#: The rules that Spark has.
SPARK_KEEP = ("shortest-path", "longest", "shortest", "path-order")
