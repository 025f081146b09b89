"""Why a server failed: signatures, the first causal error, what to do."""
