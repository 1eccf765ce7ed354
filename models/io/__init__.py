"""Every file format of robots, read and written: URDF, MJCF, Denavit-Hartenberg tables, geomctrl's JSON, C headers."""
