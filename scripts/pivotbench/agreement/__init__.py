"""Right answers as evidence: what smoke and load recorded of each configuration, held against a reference.

reading -> departures, distance -> judgement (who is out), load (who is out under load), speculative (whether
speculation keeps the text) -> phase, which puts them together. Only the race and the decision judge so: no
stage reads another configuration's file.
"""

from pivotbench.agreement.phase import Agreement, agree
from pivotbench.agreement.reference import baseline

__all__ = ["Agreement", "agree", "baseline"]
