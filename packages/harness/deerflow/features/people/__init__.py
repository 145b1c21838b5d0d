"""People: accounts that are suspended or deleted."""
