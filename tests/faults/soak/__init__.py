"""A seeded soak of random kill points: whatever dies, a rerun ends with the same files; nothing is left."""
