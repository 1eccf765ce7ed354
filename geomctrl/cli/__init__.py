"""The command line. `main` defines the program, each command is a module; `terminal` and `options` are shared."""
