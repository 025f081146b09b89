"""A real SLURM of one node, and campaigns on it."""
