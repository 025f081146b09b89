"""What depends on the load: goodput, the best by load, crossings, the Pareto set."""
