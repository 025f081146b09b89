"""Install the study's engine, read the flags of its versions, and check the study's flags against them."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from pathlib import Path

from pivotbench.campaign import Campaign
from pivotbench.command import ROOT, run
from pivotbench.files import write_json
from pivotbench.installations import read_flags
from pivotbench.provision import install_engine
from pivotbench.study import check_conflicts, check_flags, deprecated_flags, load_study


def main() -> None:
    """Read the flags of every version the study names, each once, and keep them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--root", type=Path, default=ROOT)
    parser.add_argument("--study", required=True, type=Path)
    parser.add_argument("--output", type=Path, help="a record of the versions and their flags")
    asked = parser.parse_args()
    campaign = Campaign(study=load_study(asked.study), root=asked.root)
    study, engine = campaign.study, campaign.engine
    catalogues = {}
    for version in campaign.versions:
        if campaign.installs(version):
            install_engine(engine.name, campaign.root)
        catalogues[version] = read_flags(engine, campaign.installation(version), study.env)
    check_flags(study, catalogues, engine.reserved_flags)
    warnings = [*check_conflicts(study, catalogues, campaign.kinds), *deprecated_flags(study, catalogues)]
    for line in warnings:
        print(f"warning: {line}", file=sys.stderr)
    if asked.output:
        versions = [{"name": name, **asdict(catalogue)} for name, catalogue in catalogues.items()]
        write_json(asked.output, {"versions": versions})


run(main)
