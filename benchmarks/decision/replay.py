"""Replay the founding campaign through the real rules and print what they say: `make replay`.

Its outcomes are recorded as single launches in tests/campaigns.py: two crashes, garbage, 71.6 and 71.9 tok/s,
then MTP on random tokens. The replicate after it is synthetic: it shows what further rounds would add.
"""

from __future__ import annotations

from campaigns import founding_decision, synthetic_replicate
from pivotbench.summary.text import summary_markdown


def main() -> None:
    """Print both summaries."""
    print(summary_markdown(founding_decision()))
    print("---\n\nSYNTHETIC: nobody measured what follows; launches are drawn around 71.6 and 71.9 tok/s.\n")
    print(summary_markdown(synthetic_replicate()))


if __name__ == "__main__":
    main()
