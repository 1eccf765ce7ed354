"""Sweeps: runs over a space of parameters, block by block, on this machine or a cluster, kept in a store."""
