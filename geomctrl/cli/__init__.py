"""The command line. `main` is the program, each command is a module, `terminal` and `options` are what they share."""
