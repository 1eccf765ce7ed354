"""Code made for one robot: kernels run once on symbols, and what they computed as machine code, C or PTX."""
