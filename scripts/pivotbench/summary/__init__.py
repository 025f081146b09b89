"""The decision for people: summary.md, and a dozen lines for the end of a run."""
