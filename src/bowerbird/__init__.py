"""Bowerbird: a web crawler that spends every fetch where it gains searchers most."""

__version__ = "0.1.0"
