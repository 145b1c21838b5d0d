"""Connections: providers of models and of searches, as administrators connect them."""
