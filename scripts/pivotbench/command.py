"""How the entry points start and fail: one line for a user's error, a traceback for ours."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from pivotbench.errors import UserError, file_fault

if TYPE_CHECKING:
    from pivotbench.campaign import Campaign

ROOT = Path(__file__).resolve().parents[2]


def campaign_of(study: Path) -> Campaign:
    """Return the campaign of a study file on this machine; raises UserError."""
    # Charts and report are made of results alone, and start without it.
    from pivotbench.campaign import Campaign
    from pivotbench.study import load_study

    return Campaign(study=load_study(study), root=ROOT)


def results_command(description: str) -> tuple[Campaign, Path]:
    """Read ``--study FILE --output FOLDER``; return the campaign and the folder of results."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--study", required=True, type=Path)
    parser.add_argument("--output", required=True, type=Path)
    asked = parser.parse_args()
    output: Path = asked.output
    return campaign_of(asked.study), output


def run(main: Callable[[], None]) -> None:
    """Run an entry point; exit 2 with one line where the user has to mend something."""
    try:
        main()
    except UserError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except OSError as error:
        if (fault := file_fault(error)) is None:
            raise
        print(f"error: {fault}", file=sys.stderr)
        sys.exit(2)
