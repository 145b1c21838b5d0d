"""Tracing: when a run did what, as a timeline, and as traces for services of others (OpenTelemetry, Langfuse and LangSmith)."""
