"""Tools for the web. Providers are found at ``deerflow.community.<provider>.tools``, where configurations name them."""
