"""Read log files and named arrays into the fields of a `Dataset`: formats, names, units, motor to joint coordinates.

Each format is a file in this package and a row of `formats.FORMATS`; it produces a `Recording`, numbers by name.
`naming` decides which of them are t, q, v, a, tau or currents, and of which joint; `fields` converts them to SI units
and joint coordinates.
"""
