"""Small faults, drawn from the source of lshdup: do the tests notice them?

`drawing` lists every fault that can be drawn, `reached` records which tests enter which function,
and `python -m tests.mutants` puts the drawn faults into a copy, one after the other, and runs the
tests that enter the changed function. `equivalents.txt` names the faults that change no answer.
"""
