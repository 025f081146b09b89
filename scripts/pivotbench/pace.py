"""The pace of a slow server, by what people read: requests in flight and time limits are reckoned with it."""

SLOW_TOKEN_SECONDS = 0.1
