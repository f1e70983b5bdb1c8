"""The deep tier: what takes a library to see.  Each module is imported only with `--deep`, and its library only then.

A library that is not installed is no failure of the file: the check is skipped, and the report names the library.
"""
