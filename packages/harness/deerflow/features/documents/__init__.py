"""Documents: the text of what is uploaded, made in the background."""
