"""The documents of a run: which there are, and their bytes. `readers` says which reader takes which
file; `finding` lists files, `expansion` their records, `text_batches` reads both.
"""
