"""What a host has: devices, engines, containers, models, and where they lie."""
