"""Judging shell commands: what a command line would do, without running it."""
