"""Robot models as data: joints, inertias, the immutable tree, its construction, configurations as a Lie group."""
