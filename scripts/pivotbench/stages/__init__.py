"""The four stages of a cell: launch, smoke, throughput, teardown."""
