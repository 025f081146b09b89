"""Runs our client as the throughput stage does, and writes what it reports in SGLang's words.

our_client.py URL DIALECT STREAMS REQUESTS TOKENS FILE
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import cast

from ground_truth.truth import load, reported_figures
from pivotbench.client.open_files import open_files
from pivotbench.engines.endpoints import Dialect

OTHER_FILES = 64


def main() -> None:
    """Send the load and write one JSON object."""
    url, dialect, streams, requests, tokens, file = sys.argv[1:]
    open_files(int(streams) + OTHER_FILES)
    sent = load(url, cast(Dialect, dialect), streams=int(streams), requests=int(requests), tokens=int(tokens))
    ok = [record for record in sent.records if record.status == "ok"]
    figures = reported_figures(ok)
    reported = {
        "completed": len(ok),
        "duration": sent.wall_seconds,
        "output_throughput": figures.throughput_tok_s,
        "mean_ttft_ms": figures.ttft_mean_ms,
        "mean_itl_ms": figures.itl_mean_ms,
        "mean_tpot_ms": figures.tpot_mean_ms,
    }
    Path(file).write_text(json.dumps(reported))


if __name__ == "__main__":
    main()
