"""Judge one round of a phase: who needs another, or why the phase ended."""

import argparse
from pathlib import Path

from pivotbench.command import campaign_of, run
from pivotbench.decision.racing import judge_round
from pivotbench.decision_rules import DecisionRules
from pivotbench.evidence import read_cells
from pivotbench.files import write_json
from pivotbench.rounds import base_memory, remembered_base, stored_rounds


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--study", required=True, type=Path)
    parser.add_argument("--phase", required=True)
    parser.add_argument("--round", required=True, type=int)
    parser.add_argument("--output", required=True, type=Path)
    asked = parser.parse_args()
    campaign = campaign_of(asked.study)
    rounds = stored_rounds(campaign)
    cells = [cell for n in range(1, asked.round + 1) for cell in rounds.asked(asked.phase, n)]
    earlier = [] if asked.phase == "backends" else rounds.told("backends")
    earlier += rounds.told(asked.phase)[: asked.round - 1]
    race = judge_round(
        DecisionRules.from_study(campaign.study),
        asked.phase,
        asked.round,
        read_cells(cell.folder for cell in cells),
        earlier,
        remembered_base(campaign),
    )
    if race["base"] is not None:
        write_json(base_memory(campaign), {"base": race["base"]})
    write_json(asked.output, race)
    print("\n".join(race["log"]))


run(main)
