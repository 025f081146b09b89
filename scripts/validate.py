"""Check a study, its flags and what is known against its launches, without launching; say what would run."""

import argparse
from pathlib import Path

from pivotbench.command import campaign_of, run
from pivotbench.plan import plan
from pivotbench.study import check_conflicts, check_flags


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, type=Path)
    asked = parser.parse_args()
    campaign = campaign_of(asked.study)
    campaign.check_model()
    study, catalogues = campaign.study, campaign.catalogues()
    check_flags(study, catalogues, campaign.engine.reserved_flags)
    warnings = check_conflicts(study, catalogues, campaign.kinds)
    versions = ", ".join(sorted({str(catalogue.version) for catalogue in catalogues.values()}))
    print(
        f"OK: {asked.study}: study {study.name}, its flags are those of {study.engine} {versions}",
        *warnings,
        *plan(campaign),
        sep="\n  ",
    )


run(main)
