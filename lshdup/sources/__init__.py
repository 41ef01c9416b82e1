"""The documents of a run: which there are, and their bytes; files, id lists, records of JSON Lines
and Parquet files.
"""
