"""What a trace becomes: LLVM machine code, C99, PTX; the memory, caches and calls around it."""
