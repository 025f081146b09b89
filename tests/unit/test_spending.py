"""How the risk is divided over pairs and looks."""

from __future__ import annotations

import math
import random

import pytest
from scipy.special import ndtri

from pivotbench.decision.spending import EXPONENT, Risk, nominal_level


def test_a_single_look_may_spend_everything() -> None:
    assert nominal_level(0.01, 3, 3, 3) == pytest.approx(0.01)


def test_the_first_look_spends_what_its_share_of_the_rounds_allows() -> None:
    assert nominal_level(0.01, 2, 5, 2) == pytest.approx(0.01 * 0.4**EXPONENT)


def test_looks_share_evidence_so_each_may_err_more_often_than_bonferroni_would_grant() -> None:
    shares = [0.01 * ((n / 5) ** EXPONENT - ((n - 1) / 5) ** EXPONENT) for n in (3, 4, 5)]
    assert all(nominal_level(0.01, 2, 5, n) > share for n, share in zip((3, 4, 5), shares, strict=True))


def test_all_looks_together_err_as_often_as_was_to_be_spent() -> None:
    rng = random.Random(5)
    alpha, first, last = 0.05, 2, 6
    bounds = {n: -float(ndtri(nominal_level(alpha, first, last, n))) for n in range(first, last + 1)}
    crossed = 0
    for _ in range(20_000):
        total = 0.0
        for n in range(1, last + 1):
            total += rng.gauss(0, 1)
            if n >= first and total / math.sqrt(n) > bounds[n]:
                crossed += 1
                break
    # Four standard errors of 20,000 trials are 0.6 %.
    assert crossed / 20_000 == pytest.approx(alpha, abs=0.006)


def test_the_risk_is_divided_over_all_pairs_and_equivalence_to_the_best_over_rivals() -> None:
    risk = Risk.among(0.95, 12, 2, 2)
    assert risk.difference(2) == pytest.approx(0.05 * 0.1 / (2 * 66))
    assert risk.equivalence(2, to_best=True) == pytest.approx(0.05 * 0.9 / 11)
    assert risk.equivalence(2, to_best=False) == risk.difference(2)


def test_one_pair_alone_has_the_whole_risk_either_way() -> None:
    risk = Risk.among(0.95, 2, 2, 2)
    assert risk.difference(2) == pytest.approx(0.025)
    assert risk.equivalence(2, to_best=True) == pytest.approx(0.05)


def test_rounds_beyond_the_limit_are_judged_like_the_last() -> None:
    risk = Risk.among(0.95, 4, 2, 5)
    assert risk.difference(9) == risk.difference(5) > risk.difference(2) == risk.difference(1)
