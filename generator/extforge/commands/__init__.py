"""The commands, one module each; the command line imports the one that it runs."""
