"""A robot as data: joints, inertias, the immutable tree, how it is built, and its configurations as a Lie group."""
