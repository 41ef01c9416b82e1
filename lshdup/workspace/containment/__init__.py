"""Pairs of containment over a store: the choice of the join, and the samples that it may need."""
