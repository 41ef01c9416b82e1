"""Incremental runs over a store: `--engine local`."""
