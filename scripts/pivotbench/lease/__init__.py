"""A server is a lease: ensured by whoever needs it, stopped and proven gone when nobody does."""
