"""A scripted stand-in for SGLang: the same command line and answers, with faults on demand."""
