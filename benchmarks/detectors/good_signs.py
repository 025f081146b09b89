"""Generators of good text made of signs: drawings, tables, notations, dumps."""

from __future__ import annotations

import base64
import random

from benchmarks.detectors.samples import Makers
from benchmarks.detectors.words import NAMES, OBJECTS, SUBJECTS, TOWNS, phrase, sentence

MAKERS = Makers()

# Fit: the thresholds were chosen on these.


@MAKERS.family("good", "fit", 10)
def markdown_table(dice: random.Random) -> str:
    rows = [
        f"| {dice.choice(NAMES)} | {dice.randrange(100)} | {dice.choice(TOWNS)} | yes |" for _ in range(14)
    ]
    return "\n".join(["| name | age | town | paid |", "|------|-----|------|------|", *rows])


@MAKERS.family("good", "fit", 10)
def hex_dump(dice: random.Random) -> str:
    rows = []
    for n in range(24):
        data = bytes(16) if dice.random() < 0.5 else dice.randbytes(16)
        rows.append(f"{n * 16:08x}  {data[:8].hex(' ')}  {data[8:].hex(' ')}")
    return "\n".join(rows)


# Report: no threshold was chosen on these.


@MAKERS.family("good", "report", 7)
def base64_block(dice: random.Random) -> str:
    data = dice.randbytes(200) + bytes(dice.choice((0, 24))) + dice.randbytes(60)
    text = base64.b64encode(data).decode()
    return "\n".join(text[n : n + 64] for n in range(0, len(text), 64))


@MAKERS.family("good", "report", 7)
def menu_with_leaders(dice: random.Random) -> str:
    dishes = [f"{phrase(dice, 3).title()} ".ljust(50, ".") + f" {dice.randint(4, 30)}.50" for _ in range(12)]
    return "MENU\n" + "=" * 56 + "\n" + "\n".join(dishes)


@MAKERS.family("good", "report", 7)
def chess_game(dice: random.Random) -> str:
    moves = [
        "e4",
        "e5",
        "Nf3",
        "Nc6",
        "Bb5",
        "a6",
        "Ba4",
        "Nf6",
        "O-O",
        "Be7",
        "Re1",
        "b5",
        "Bb3",
        "d6",
        "c3",
        "O-O",
        "h3",
        "Na5",
        "Bc2",
        "c5",
        "d4",
        "Qc7",
        "Nbd2",
        "cxd4",
    ]
    shuffle = ["Ng1", "Ng8", "Nf3", "Nf6"] * 3
    played = moves[: dice.randint(12, 24)] + shuffle[: dice.randint(0, 8)]
    return " ".join(f"{n // 2 + 1}. {m}" if n % 2 == 0 else m for n, m in enumerate(played)) + " 1/2-1/2"


@MAKERS.family("good", "report", 7)
def strand_of_dna(dice: random.Random) -> str:
    bases = "".join(dice.choice("ACGT") for _ in range(dice.randint(200, 400)))
    bases = bases[:100] + "CAG" * dice.randint(0, 12) + bases[100:] + "A" * dice.randint(0, 20)
    return ">seq1\n" + "\n".join(bases[n : n + 60] for n in range(0, len(bases), 60))


@MAKERS.family("good", "report", 7)
def drawing_with_signs(dice: random.Random) -> str:
    width = dice.randint(12, 40)
    box = ["+" + "-" * width + "+", *["|" + " " * width + "|"] * 4, "+" + "-" * width + "+"]
    tree = [" " * (9 - n) + "*" * (2 * n + 1) for n in range(dice.randint(5, 10))]
    return f"{sentence(dice)}\n\n" + "\n".join(box) + "\n\n" + "\n".join(tree)


@MAKERS.family("good", "report", 7)
def multiplication_table(dice: random.Random) -> str:
    low = dice.randint(2, 9)
    return "\n".join(f"{n} x {m} = {n * m}" for n in range(low, low + 4) for m in range(1, 13))


@MAKERS.family("good", "report", 7)
def formulas_with_greek_letters(dice: random.Random) -> str:
    greek = dice.sample("αβγδεθλμσφω", 4)
    lines = [
        f"Let {g}x + Δ{g} = {dice.randint(2, 9)}{g}² and ∑{g}ᵢ ≤ {dice.randint(2, 99)}μm." for g in greek
    ]
    return "\n".join(lines) + f" Then \\frac{{{greek[0]}}}{{{greek[1]}}} → ∞."


@MAKERS.family("good", "report", 7)
def bits_in_groups(dice: random.Random) -> str:
    text = dice.choice(OBJECTS)
    return f'"{text}" in binary: ' + " ".join(f"{ord(c):08b}" for c in text)


@MAKERS.family("good", "report", 7)
def telephone_list(dice: random.Random) -> str:
    return "\n".join(
        f"{dice.choice(SUBJECTS).title():<28}+00 555 {dice.randrange(10**4):04} 0000" for _ in range(18)
    )


@MAKERS.family("good", "report", 7)
def guitar_tablature(dice: random.Random) -> str:
    return "\n".join(
        f"{string}|" + "|".join("".join(dice.choice("----0235") for _ in range(12)) for _ in range(4)) + "|"
        for string in "eBGDAE"
    )


@MAKERS.family("good", "report", 7)
def truth_table(dice: random.Random) -> str:
    names = dice.sample("pqrstabc", 4)
    rows = [[str(n >> bit & 1 == 1) for bit in (3, 2, 1, 0)] for n in range(16)]
    return " | ".join(names) + "\n" + "\n".join(" | ".join(row) for row in rows)


@MAKERS.family("good", "report", 7)
def latex_matrix(dice: random.Random) -> str:
    size = dice.randint(5, 9)
    rows = [" & ".join("1" if n == m else "0" for m in range(size)) for n in range(size)]
    return "The identity is\n\\begin{pmatrix}\n" + " \\\\\n".join(rows) + "\n\\end{pmatrix}"


@MAKERS.family("good", "report", 7)
def path_of_a_drawing(dice: random.Random) -> str:
    points = " ".join(f"L{dice.randrange(99)}.{dice.randrange(9)},{dice.randrange(99)}" for _ in range(60))
    return f'<svg viewBox="0 0 100 100"><path fill="none" d="M0,0 {points} Z"/></svg>'


@MAKERS.family("good", "report", 7)
def nested_brackets(dice: random.Random) -> str:
    depth = dice.randint(6, 24)
    opened = "".join(f"({dice.choice(('add', 'mul', 'neg'))} {dice.randrange(9)} " for _ in range(depth))
    return f"The expression is\n\n{opened}0{')' * depth}\n\n{sentence(dice)}"


@MAKERS.family("good", "report", 7)
def calendar_of_a_month(dice: random.Random) -> str:
    first, days = dice.randrange(7), dice.choice((28, 30, 31))
    cells = ["  "] * first + [f"{day:2}" for day in range(1, days + 1)]
    weeks = [" ".join(cells[n : n + 7]) for n in range(0, len(cells), 7)]
    return "Mo Tu We Th Fr Sa Su\n" + "\n".join(weeks)


@MAKERS.family("good", "report", 7)
def progress_bars(dice: random.Random) -> str:
    step = dice.choice((5, 10))
    return "\n".join(f"[{'#' * (n // 2)}{'.' * (50 - n // 2)}] {n:3}%" for n in range(0, 101, step))


@MAKERS.family("good", "report", 7)
def grid_of_a_puzzle(dice: random.Random) -> str:
    row = "+-------+-------+-------+"
    lines = [
        "| " + " | ".join(" ".join(dice.choice("....123456789") for _ in range(3)) for _ in range(3)) + " |"
        for _ in range(9)
    ]
    return "\n".join([row, *lines[:3], row, *lines[3:6], row, *lines[6:], row])


@MAKERS.family("good", "report", 7)
def list_of_addresses(dice: random.Random) -> str:
    lines = [f"2001:db8:0:0:0:0:0:{dice.randrange(16**4):x}" for _ in range(10)]
    return "\n".join(
        lines + [f"https://example.org/{dice.choice(TOWNS).lower()}/index.html" for _ in range(10)]
    )
