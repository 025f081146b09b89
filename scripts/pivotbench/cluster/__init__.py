"""What a cluster's scheduler is asked for, and what it says."""
