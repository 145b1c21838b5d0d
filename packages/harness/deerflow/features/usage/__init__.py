"""Usage: what models cost, and who used them."""
