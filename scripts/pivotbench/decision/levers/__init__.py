"""What holds the winner back, and what to try next."""
