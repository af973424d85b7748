"""Two sets of rows -> which cases became slower: reading, judging, drawing; and measuring anew.

read.py and foreign.py make a Side of a file; ratios.py is the arithmetic, judge.py the verdicts,
text.py and picture.py what is shown; measure.py benches revisions and variants in fresh processes.
"""
