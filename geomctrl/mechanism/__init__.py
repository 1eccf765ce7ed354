"""A robot as data: joints, inertias, the frozen tree, how one is made, and its configurations as a group."""
