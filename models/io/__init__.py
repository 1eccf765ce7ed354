"""Read and write robot files: URDF, MJCF, Denavit-Hartenberg tables, geomctrl's JSON, C headers."""
