"""Guardrails: providers judge each tool call before it is made, and a person decides where they are not sure."""
