"""Agents of other makers, which the lead agent gives tasks to by the Agent Client Protocol."""
