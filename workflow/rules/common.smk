# The study, the campaign on this machine, and the functions that name what a rule needs.

import sys
from pathlib import Path

ROOT = Path(workflow.basedir)
sys.path[:0] = [str(ROOT / "scripts"), str(ROOT / "workflow")]

from bridge import Bridge, one_line
from pivotbench.cells import last_files, stage_files
from pivotbench.rounds import Rounds, stored_rounds
from pivotbench.turns import TURNS, turn
from pivotbench.cluster.walltime import stage_minutes

bridge = Bridge(workflow, config)
campaign = bridge.campaign

PYTHON = sys.executable
SCRIPTS = str(ROOT / "scripts")
STUDY = campaign.study.name
RESULTS = str(campaign.results)
SOURCE = str(campaign.study.source.file)
HOST = campaign.host
GPUS = campaign.study.hosts.gpus
FROZEN = bridge.frozen
OLD, NEW = bridge.compared


wildcard_constraints:
    phase="backends|speculative",
    configuration=r"[a-z0-9][a-z0-9.+-]*",
    round=r"[1-9][0-9]*",


# Text of the study reaches params by functions alone, in whose results Snakemake looks for no wildcards, and
# shells by {...:q} alone.
def decision_rules(wildcards):
    """All that races, decision, charts and report depend on beyond their cells."""
    return campaign.decision_rules


def asked(stage):
    """What a stage's result depends on."""
    return one_line(lambda wildcards: campaign.asked(stage, campaign.cell(**wildcards)))


def needs(stage, *earlier):
    """A stage's input: the earlier stages of the same cell; a stale result is made anew."""

    @one_line
    def files(wildcards):
        cell = campaign.cell(**wildcards)
        # Only for what will run: as an ancestor of all cells, an engine made anew in the same run
        # would hide from Snakemake which of them are forced.
        provided = campaign.provided if bridge.renew(stage, cell) and stage != "teardown" else []
        return provided + [path.format(**wildcards) for path in earlier]

    return files


def walltime(stage):
    """The minutes a stage may take on a cluster, by the study."""
    return stage_minutes(campaign.study, stage)


def launch_priority(wildcards):
    """Within a round, launches take turns in a random order that is the same at every invocation."""
    return TURNS - 1 - turn(STUDY, wildcards.phase, int(wildcards.round), wildcards.configuration)


@one_line
def read_race(phase, round):
    """A race's verdict; Snakemake runs the race first where it has none that stands."""
    bridge.prepare()
    race = campaign.race_file(phase, round)
    if race not in bridge.standing:
        checkpoints.race.get(phase=phase, round=round)
    return bridge.race(race)


rounds = stored_rounds(campaign) if FROZEN else Rounds(campaign, read_race)


@one_line
def race_cells(wildcards):
    """The cells a race judges, and the races before it."""
    race = wildcards.phase, int(wildcards.round)
    return rounds.before(*race) + last_files(bridge.in_sight(rounds.asked(*race)))


@one_line
def backend_races(wildcards):
    """Every race of the first phase."""
    return rounds.race_files(["backends"])


@one_line
def race_files(wildcards):
    """Every race of both phases."""
    return rounds.race_files(campaign.phases)


@one_line
def evidence_files(wildcards):
    """Every race, and every cell that a race asked for; of stored results the stage files that are there."""
    cells = rounds.evidence()
    bridge.prepare()  # of stored races alone, nothing has asked for it yet
    files = bridge.readable(stage_files(cells)) if FROZEN else last_files(bridge.in_sight(cells))
    return rounds.race_files(campaign.phases) + files


onstart:
    bridge.start()


onsuccess:
    bridge.finish()


onerror:
    bridge.finish()
