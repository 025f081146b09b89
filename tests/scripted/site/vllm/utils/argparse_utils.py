"""vLLM's parser takes names with underscores too; the plain one is enough here."""

from argparse import ArgumentParser as FlexibleArgumentParser

__all__ = ["FlexibleArgumentParser"]
