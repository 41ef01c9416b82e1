"""Compiled loops on arrays, one file per stage that calls them.

Nothing outside this folder imports numba, and nothing in it knows documents, names or parameters. A kernel checks nothing: its
caller (the stage of the same name) has checked shapes and domains before.
"""
