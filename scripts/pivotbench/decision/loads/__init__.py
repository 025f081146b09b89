"""What depends on the load: goodput, what to serve by load, crossings, the Pareto set."""
