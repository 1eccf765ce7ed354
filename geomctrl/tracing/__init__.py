"""Numpy functions run once on symbols: their operations become machine code, C, PTX, intervals and derivatives."""
