"""Pictures and three-dimensional views: the only package that imports plotting libraries."""
