"""Moving in: what other programs keep becomes threads, memory, agents and files here. Each source has a file of its own."""
