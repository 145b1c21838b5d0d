"""What an installation of DeerFlow adds of its own."""
