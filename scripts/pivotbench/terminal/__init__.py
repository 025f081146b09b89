"""What a person at the terminal sees while a campaign runs; it knows cells and stages, not Snakemake."""
