"""What is known of a model from its config.json: layers, bytes, caches."""
