"""Decide: what is eliminated, what is equivalent, what is fastest, whether speculation pays."""

from pivotbench.command import results_command, run
from pivotbench.decision.decide import decide
from pivotbench.decision_rules import DecisionRules
from pivotbench.evidence import read_cells
from pivotbench.files import write_json, write_text
from pivotbench.rounds import stored_rounds
from pivotbench.summary.text import summary_markdown


def main() -> None:
    campaign, output = results_command(__doc__)
    rounds = stored_rounds(campaign)
    races = [race for phase in campaign.phases for race in rounds.told(phase)]
    cells = read_cells(cell.folder for cell in rounds.evidence())
    decision = decide(DecisionRules.from_study(campaign.study), races, cells)
    write_text(output / "summary.md", summary_markdown(decision))
    write_json(output / "decision.json", decision)


run(main)
