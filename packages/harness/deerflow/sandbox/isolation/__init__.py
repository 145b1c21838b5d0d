"""How a command is confined: namespaces, Landlock, and the system-call filter that both use."""
