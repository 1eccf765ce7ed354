"""Code generation from traces: LLVM machine code, C99 and PTX, with memory, caches and calls from Python."""
