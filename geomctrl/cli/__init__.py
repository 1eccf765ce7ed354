"""The command line: `main` is the program, each command is a file, and `terminal` is what they share.

`track` runs a `scenario`, made for any robot of `motions`, `gains` and `plants`.
"""
