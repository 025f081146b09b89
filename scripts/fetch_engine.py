"""Install the study's engine, read its flags, and check the study's flags against them."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from pivotbench.campaign import Campaign
from pivotbench.command import ROOT, run
from pivotbench.engines import get_engine
from pivotbench.provision import install_engine, write_catalogue
from pivotbench.study import check_conflicts, check_flags, load_study


def main() -> None:
    """Write the engine's list of flags, whose file marks the environment as ready."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--study", required=True, type=Path)
    parser.add_argument("--output", type=Path, help="default: beside the engine, or in the cache")
    asked = parser.parse_args()
    campaign = Campaign(study=load_study(asked.study), root=asked.root)
    engine = get_engine(campaign.study.engine)
    if campaign.study.python is None:
        install_engine(engine.name, campaign.root)
    catalogue = engine.read_flags(campaign.python)
    check_flags(campaign.study, catalogue, engine.reserved_flags)
    for line in check_conflicts(campaign.study, catalogue, campaign.kinds):
        print(f"warning: {line}", file=sys.stderr)
    write_catalogue(campaign.flags_file, catalogue)
    if asked.output:
        write_catalogue(asked.output, catalogue)


run(main)
