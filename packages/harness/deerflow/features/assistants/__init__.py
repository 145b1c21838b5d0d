"""Assistants: the lead agent, the custom agents of a person, and what clients made of them with settings of their own."""
