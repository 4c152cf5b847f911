"""The command line, one file a command: `add_arguments(parser)` and `act(options)`, which returns the exit status.

A command imports the rooms that it needs inside `act`, so that `--help`, `--version` and a wrong command wait for none.
"""
