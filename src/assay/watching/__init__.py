"""`assay bench FILE --watch`: a saved file is judged and timed anew, by children warm before it.

files.py notices a save, parts.py and look.py say what changed in it, spare.py and pool.py keep
children warm, oracles.py keeps the truth of an Op that did not change, judging.py judges and times
one version, and loop.py puts them together.
"""
