"""Exact joins: pairs of sets by prefixes of rare elements."""
