"""Generators of good text that looks odd. Fit and report families are different kinds of text."""

from __future__ import annotations

import base64
import json
import random

from benchmarks.detectors import answers
from benchmarks.detectors.samples import Answer, Makers, Sample
from benchmarks.detectors.words import OBJECTS, SUBJECTS, foreign, phrase, prose, sentence

NAMES = [
    "Ada",
    "Bruno",
    "Chloe",
    "Dmitri",
    "Elif",
    "Farid",
    "Greta",
    "Hugo",
    "Ines",
    "Jonas",
    "Keiko",
    "Lars",
    "Mona",
    "Nadia",
    "Otto",
    "Priya",
]
TOWNS = [
    "Aarhus",
    "Brno",
    "Cork",
    "Delft",
    "Evora",
    "Ghent",
    "Haifa",
    "Izmir",
    "Jena",
    "Kobe",
    "Lima",
    "Malmo",
]

MAKERS = Makers()

# Fit: the thresholds were chosen on these.


@MAKERS.family("good", "fit", 10)
def code_of_branches(dice: random.Random) -> str:
    cases = dice.sample(NAMES, 8)
    lines = [f'    if name == "{n.lower()}":\n        return {dice.randrange(100)}' for n in cases]
    return "def number_of(name):\n" + "\n".join(lines) + "\n    return None\n"


@MAKERS.family("good", "fit", 10)
def markdown_table(dice: random.Random) -> str:
    rows = [
        f"| {dice.choice(NAMES)} | {dice.randrange(100)} | {dice.choice(TOWNS)} | yes |" for _ in range(14)
    ]
    return "\n".join(["| name | age | town | paid |", "|------|-----|------|------|", *rows])


@MAKERS.family("good", "fit", 10)
def json_records(dice: random.Random) -> str:
    people = [{"id": n, "name": dice.choice(NAMES), "active": True, "tags": []} for n in range(12)]
    return json.dumps({"people": people}, indent=dice.choice((None, 2, 4)))


@MAKERS.family("good", "fit", 10)
def hex_dump(dice: random.Random) -> str:
    rows = []
    for n in range(24):
        data = bytes(16) if dice.random() < 0.5 else dice.randbytes(16)
        rows.append(f"{n * 16:08x}  {data[:8].hex(' ')}  {data[8:].hex(' ')}")
    return "\n".join(rows)


@MAKERS.family("good", "fit", 10)
def poem_with_refrain(dice: random.Random) -> str:
    refrain = f"O {phrase(dice, 3)}, {phrase(dice, 3)}!"
    verses = ["\n".join(phrase(dice, 6).capitalize() + "," for _ in range(3)) for _ in range(5)]
    return "\n\n".join(f"{verse}\n{refrain}\n{refrain}" for verse in verses)


@MAKERS.family("good", "fit", 10)
def counting_list(dice: random.Random) -> str:
    begin, step = dice.randint(0, 50), dice.choice((1, 2, 5, 10))
    return dice.choice((", ", " ", "\n")).join(str(n) for n in range(begin, begin + 120 * step, step))


@MAKERS.family("good", "fit", 10)
def speech_with_exclamation_marks(dice: random.Random) -> str:
    return " ".join(sentence(dice).rstrip(".") + "!" * dice.randint(1, 3) for _ in range(6)) + " Noooo!!!"


@MAKERS.family("good", "fit", 10)
def chinese_prose(dice: random.Random) -> str:
    return foreign(dice, "chinese", dice.randint(1, 6))


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


@MAKERS.family("good", "fit", 10)
def answers_to_several_prompts(dice: random.Random) -> Sample:
    return Sample(tuple(Answer(prose(dice, 2)) for _ in range(dice.randint(4, 12))))


# Report: never looked at while the thresholds were chosen.


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
def arabic_or_hebrew_prose(dice: random.Random) -> str:
    return foreign(dice, dice.choice(("arabic", "hebrew")), 3)


@MAKERS.family("good", "report", 7)
def japanese_with_latin_words(dice: random.Random) -> str:
    return (
        foreign(dice, "japanese", 2)
        + f"彼は{dice.choice(NAMES)}からCDとTシャツを2枚もらい、Wi-Fiの設定をした。"
    )


@MAKERS.family("good", "report", 7)
def korean_hindi_thai_or_greek_prose(dice: random.Random) -> str:
    return foreign(dice, dice.choice(("korean", "hindi", "thai", "greek")), 3)


@MAKERS.family("good", "report", 7)
def glossary_of_many_scripts(dice: random.Random) -> str:
    words = {
        "Russian": "вода хлеб ночь город",
        "Greek": "νερό ψωμί νύχτα πόλη",
        "Arabic": "ماء خبز ليل مدينة",
        "Hebrew": "מים לחם לילה עיר",
        "Chinese": "水 面包 夜晚 城市",
        "Japanese": "みず パン よる まち",
        "Korean": "물 빵 밤 도시",
        "Hindi": "पानी रोटी रात शहर",
        "Thai": "น้ำ ขนมปัง กลางคืน เมือง",
    }
    chosen = dice.sample(sorted(words), 6)
    if dice.random() < 0.5:
        head = " | ".join(chosen)
        return head + "\n" + "\n".join(" | ".join(words[c].split()[n] for c in chosen) for n in range(4))
    return "\n".join(f"In {c}: {words[c].split()[0]} (water), {words[c].split()[1]} (bread)" for c in chosen)


@MAKERS.family("good", "report", 7)
def prose_that_quotes_other_scripts(dice: random.Random) -> str:
    quotes = (
        "слово «хлеб» means bread",
        "the sign said 出口",
        "he wrote ψωμί on the board",
        "a man called משה",
    )
    return f"{prose(dice, 3)} {' and then '.join(dice.sample(quotes, 3))}. {sentence(dice)}"


@MAKERS.family("good", "report", 7)
def chat_with_pictures(dice: random.Random) -> str:
    faces = ("🎉🎉🎉", "😂😂😂😂", "👍🏽", "👨‍👩‍👧‍👦", "❤️❤️", "🇯🇵", ":-)))", "hahahaha", "¯\\_(ツ)_/¯")
    return "\n".join(f"{dice.choice(NAMES)}: {phrase(dice, 4)} {dice.choice(faces)}" for _ in range(8))


@MAKERS.family("good", "report", 7)
def base64_block(dice: random.Random) -> str:
    data = dice.randbytes(200) + bytes(dice.choice((0, 24))) + dice.randbytes(60)
    text = base64.b64encode(data).decode()
    return "\n".join(text[n : n + 64] for n in range(0, len(text), 64))


@MAKERS.family("good", "report", 7)
def roman_numerals(dice: random.Random) -> str:
    ones = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]
    tens = ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"]
    begin = dice.randint(1, 40)
    return dice.choice(("\n", ", ")).join(tens[n // 10] + ones[n % 10] for n in range(begin, begin + 50))


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
def page_of_html(dice: random.Random) -> str:
    rows = "\n".join(
        f"      <tr>\n        <td>{dice.choice(NAMES)}</td>\n" + "        <td></td>\n" * 2 + "      </tr>"
        for _ in range(10)
    )
    return f"<html>\n  <body>\n    <table>\n{rows}\n    </table>\n  </body>\n</html>"


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
def difference_of_two_files(dice: random.Random) -> str:
    lines = []
    for _ in range(12):
        old = phrase(dice, 4).replace(" ", "_")
        lines += [f"-    {old} = None", f"+    {old} = []", "     pass"]
    return "--- a/settings.py\n+++ b/settings.py\n@@ -1,36 +1,36 @@\n" + "\n".join(lines)


@MAKERS.family("good", "report", 7)
def song_with_chorus(dice: random.Random) -> str:
    chorus = f"Na na na na, {phrase(dice, 4)}\nLa la la la la, {phrase(dice, 3)}\n(hey! hey! hey!)"
    verses = ["\n".join(phrase(dice, 6).capitalize() for _ in range(4)) for _ in range(3)]
    return "\n\n".join(f"{verse}\n\n[Chorus]\n{chorus}" for verse in verses)


@MAKERS.family("good", "report", 7)
def bits_in_groups(dice: random.Random) -> str:
    text = dice.choice(OBJECTS)
    return f'"{text}" in binary: ' + " ".join(f"{ord(c):08b}" for c in text)


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
def telephone_list(dice: random.Random) -> str:
    return "\n".join(
        f"{dice.choice(SUBJECTS).title():<28}+00 555 {dice.randrange(10**4):04} 0000" for _ in range(18)
    )


@MAKERS.family("good", "report", 7)
def short_answer(dice: random.Random) -> str:
    answers = (
        "4",
        "Paris.",
        "No!",
        "Yes, yes, yes.",
        "10000000000",
        "...",
        "n/a",
        "1/3 = 0.333333",
        "哈哈哈哈",
        "🙂",
    )
    return dice.choice(answers)


@MAKERS.family("good", "report", 7)
def very_long_log(dice: random.Random) -> str:
    lines = [
        f"{n:06} worker-{dice.randrange(8)} step {n} loss {dice.uniform(1, 3):.4f} lr 0.000100 ok"
        for n in range(dice.randint(800, 1600))
    ]
    return "\n".join(lines)


@MAKERS.family("good", "report", 7)
def unicode_explained(dice: random.Random) -> str:
    return (
        f"{sentence(dice)} A decoder that meets bytes it cannot read writes the replacement character, "
        f"U+FFFD, which looks like this: \ufffd. {prose(dice, 3)}"
    )


@MAKERS.family("good", "report", 7)
def real_answers_to_several_prompts(dice: random.Random) -> Sample:
    return Sample(tuple(Answer(answers.beginning(dice, 1.0)) for _ in range(dice.randint(6, 20))))


@MAKERS.family("good", "report", 7)
def morse_code(dice: random.Random) -> str:
    code = dict(
        zip(
            "abdegilnorstu",
            [".-", "-...", "-..", ".", "--.", "..", ".-..", "-.", "---", ".-.", "...", "-", "..-"],
            strict=True,
        )
    )
    text = prose(dice, 2).lower()
    return "In Morse code: " + " ".join(code.get(c, "/") for c in text if c in code or c == " ")


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
def assembler_listing(dice: random.Random) -> str:
    lines = []
    for n in range(24):
        order = dice.choice(("mov  eax, ebx", "nop", "nop", "add  eax, 1", "jne  .loop", "push rbp", "ret"))
        lines.append(f"  {0x401000 + n * 4:x}:\t{order}")
    return ".loop:\n" + "\n".join(lines)


@MAKERS.family("good", "report", 7)
def litany(dice: random.Random) -> str:
    return "\n".join(f"For {thing}, we give thanks." for thing in dice.sample(OBJECTS, 10))


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
def russian_with_latin_words(dice: random.Random) -> str:
    names = dice.sample(("Python", "HTML-код", "API", "USB-кабель", "Wi-Fi", "GitHub", "e-mail", "JSON"), 4)
    return f"{foreign(dice, 'russian', 3)} Установите {names[0]} и {names[1]}, затем {names[2]} и {names[3]}."


@MAKERS.family("good", "report", 7)
def dialogue_in_two_languages(dice: random.Random) -> str:
    language = dice.choice(("chinese", "russian", "arabic", "korean", "japanese"))
    return "\n".join(f"A: {sentence(dice)}\nB: {foreign(dice, language, 1)}" for _ in range(4))


@MAKERS.family("good", "report", 7)
def list_of_addresses(dice: random.Random) -> str:
    lines = [f"2001:db8:0:0:0:0:0:{dice.randrange(16**4):x}" for _ in range(10)]
    return "\n".join(
        lines + [f"https://example.org/{dice.choice(TOWNS).lower()}/index.html" for _ in range(10)]
    )


@MAKERS.family("good", "report", 7)
def laughter_and_screams(dice: random.Random) -> str:
    noises = (
        "Hahahahaha!",
        "Hmmmmmm...",
        "Noooooo!!!",
        "Zzzzzzz...",
        "Brrrrr!",
        "Ha ha ha ha!",
        "AAAAAH!!!!",
    )
    return " ".join(f"{dice.choice(noises)} {sentence(dice)}" for _ in range(4))


@MAKERS.family("good", "report", 7)
def thought_before_the_answer(dice: random.Random) -> str:
    steps = "\n".join(f"Step {n}: {phrase(dice, 8)}." for n in range(1, 9))
    return f"<think>\n{steps}\nWait, let me check. {sentence(dice)}\n</think>\n\n**Answer:** {sentence(dice)}"
