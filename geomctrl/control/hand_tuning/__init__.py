"""Tuning by hand: the numbers of a closed loop as controls, and the run for every setting of them.

`controls` lists the numbers, `outcomes` simulates one setting, `session` has history, pins and the thread that
computes, `edges` searches limits of stability, `saving` writes code and files, `tune` opens the page.
"""
