"""Loops of `passages`: from sequences of tokens to places that hold the same sequence."""
