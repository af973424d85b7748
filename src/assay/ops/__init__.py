"""The library: a folder per operator, all its ways of being written together."""
