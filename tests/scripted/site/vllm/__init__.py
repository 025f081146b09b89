"""A scripted stand-in for vLLM: its command line, paths and log lines over the scripted decoder."""
