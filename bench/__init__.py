"""Benchmarks of DeerFlow and the scripted OpenAI-compatible endpoint that tests and benchmarks talk to."""
