"""Parameter sweeps: closed loops at all points of a parameter space, on one machine or a cluster, kept in a store."""
