"""Generators of good text in words: languages, songs, speech, counting."""

from __future__ import annotations

import random

from benchmarks.detectors import answers
from benchmarks.detectors.samples import Answer, Makers, Sample
from benchmarks.detectors.words import NAMES, OBJECTS, foreign, phrase, prose, sentence

MAKERS = Makers()

# Fit: the thresholds were chosen on these.


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
def answers_to_several_prompts(dice: random.Random) -> Sample:
    return Sample(tuple(Answer(prose(dice, 2)) for _ in range(dice.randint(4, 12))))


# Report: no threshold was chosen on these.


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
def roman_numerals(dice: random.Random) -> str:
    ones = ["", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX"]
    tens = ["", "X", "XX", "XXX", "XL", "L", "LX", "LXX", "LXXX", "XC"]
    begin = dice.randint(1, 40)
    return dice.choice(("\n", ", ")).join(tens[n // 10] + ones[n % 10] for n in range(begin, begin + 50))


@MAKERS.family("good", "report", 7)
def song_with_chorus(dice: random.Random) -> str:
    chorus = f"Na na na na, {phrase(dice, 4)}\nLa la la la la, {phrase(dice, 3)}\n(hey! hey! hey!)"
    verses = ["\n".join(phrase(dice, 6).capitalize() for _ in range(4)) for _ in range(3)]
    return "\n\n".join(f"{verse}\n\n[Chorus]\n{chorus}" for verse in verses)


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
def litany(dice: random.Random) -> str:
    return "\n".join(f"For {thing}, we give thanks." for thing in dice.sample(OBJECTS, 10))


@MAKERS.family("good", "report", 7)
def russian_with_latin_words(dice: random.Random) -> str:
    names = dice.sample(("Python", "HTML-код", "API", "USB-кабель", "Wi-Fi", "GitHub", "e-mail", "JSON"), 4)
    return f"{foreign(dice, 'russian', 3)} Установите {names[0]} и {names[1]}, затем {names[2]} и {names[3]}."


@MAKERS.family("good", "report", 7)
def dialogue_in_two_languages(dice: random.Random) -> str:
    language = dice.choice(("chinese", "russian", "arabic", "korean", "japanese"))
    return "\n".join(f"A: {sentence(dice)}\nB: {foreign(dice, language, 1)}" for _ in range(4))


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
