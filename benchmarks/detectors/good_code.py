"""Generators of good text for machines: code, data, logs."""

from __future__ import annotations

import json
import random

from benchmarks.detectors.samples import Makers
from benchmarks.detectors.words import NAMES, TOWNS, phrase, sentence

MAKERS = Makers()

# Fit: the thresholds were chosen on these.


@MAKERS.family("good", "fit", 10)
def code_of_branches(dice: random.Random) -> str:
    cases = dice.sample(NAMES, 8)
    lines = [f'    if name == "{n.lower()}":\n        return {dice.randrange(100)}' for n in cases]
    return "def number_of(name):\n" + "\n".join(lines) + "\n    return None\n"


@MAKERS.family("good", "fit", 10)
def json_records(dice: random.Random) -> str:
    people = [{"id": n, "name": dice.choice(NAMES), "active": True, "tags": []} for n in range(12)]
    return json.dumps({"people": people}, indent=dice.choice((None, 2, 4)))


@MAKERS.family("good", "fit", 10)
def service_log(dice: random.Random) -> str:
    second, lines = 0, []
    for _ in range(30):
        second += dice.randint(1, 9)
        event = dice.choice(("GET /health 200", "GET /health 200", "POST /orders 201", "GET /orders 404"))
        lines.append(f"2031-03-04T10:{second // 60:02}:{second % 60:02}Z INFO web: {event}")
    return "\n".join(lines)


@MAKERS.family("good", "fit", 10)
def rows_of_empty_cells(dice: random.Random) -> str:
    cells = "        <td></td>\n" * dice.randint(4, 10)
    nulls = ", ".join(["null"] * dice.randint(8, 24))
    row = f"      <tr>\n        <td>{dice.choice(NAMES)}</td>\n{cells}      </tr>\n"
    return f'<table>\n{row}</table>\n\n{{"{dice.choice(TOWNS)}": [{nulls}]}}\n\n{sentence(dice)}'


# Report: no threshold was chosen on these.


@MAKERS.family("good", "report", 7)
def code_with_long_whitespace(dice: random.Random) -> str:
    lines = [f"{' ' * 60}# {phrase(dice, 4)}", "int table[] = {"]
    lines += [f"{' ' * 44}{dice.randrange(9)},{' ' * 30}/* {dice.choice(TOWNS)} */" for _ in range(9)]
    return "\n".join([*lines, "};", "", "", ""])


@MAKERS.family("good", "report", 7)
def array_with_zeros(dice: random.Random) -> str:
    rows = [", ".join(str(dice.choice((0, 0, 0, 0, 0, 1))) for _ in range(16)) for _ in range(16)]
    return "grid = [\n" + "\n".join(f"    [{row}]," for row in rows) + "\n]"


@MAKERS.family("good", "report", 7)
def csv_with_empty_fields(dice: random.Random) -> str:
    rows = [
        f"{n},{dice.choice(NAMES)},,,{dice.choice(TOWNS)},{dice.choice(('', 'N/A'))},0" for n in range(20)
    ]
    return "\n".join(["id,name,phone,fax,town,note,balance", *rows])


@MAKERS.family("good", "report", 7)
def page_of_html(dice: random.Random) -> str:
    rows = "\n".join(
        f"      <tr>\n        <td>{dice.choice(NAMES)}</td>\n" + "        <td></td>\n" * 2 + "      </tr>"
        for _ in range(10)
    )
    return f"<html>\n  <body>\n    <table>\n{rows}\n    </table>\n  </body>\n</html>"


@MAKERS.family("good", "report", 7)
def difference_of_two_files(dice: random.Random) -> str:
    lines = []
    for _ in range(12):
        old = phrase(dice, 4).replace(" ", "_")
        lines += [f"-    {old} = None", f"+    {old} = []", "     pass"]
    return "--- a/settings.py\n+++ b/settings.py\n@@ -1,36 +1,36 @@\n" + "\n".join(lines)


@MAKERS.family("good", "report", 7)
def traceback_of_a_recursion(dice: random.Random) -> str:
    frame = f'  File "/srv/app/walk.py", line {dice.randint(9, 99)}, in walk\n    return walk(node.next)\n'
    return (
        "Traceback (most recent call last):\n"
        + frame * 3
        + f"  [Previous line repeated {dice.randint(900, 996)} more times]\n"
        + "RecursionError: maximum recursion depth exceeded"
    )


@MAKERS.family("good", "report", 7)
def very_long_log(dice: random.Random) -> str:
    lines = [
        f"{n:06} worker-{dice.randrange(8)} step {n} loss {dice.uniform(1, 3):.4f} lr 0.000100 ok"
        for n in range(dice.randint(800, 1600))
    ]
    return "\n".join(lines)


@MAKERS.family("good", "report", 7)
def assembler_listing(dice: random.Random) -> str:
    lines = []
    for n in range(24):
        order = dice.choice(("mov  eax, ebx", "nop", "nop", "add  eax, 1", "jne  .loop", "push rbp", "ret"))
        lines.append(f"  {0x401000 + n * 4:x}:\t{order}")
    return ".loop:\n" + "\n".join(lines)
