"""Generators of what broken backends answer. Fit and report families break texts in different ways."""

from __future__ import annotations

import random

from benchmarks.detectors import answers
from benchmarks.detectors.samples import Answer, Makers, Sample
from benchmarks.detectors.words import PROSE, foreign, phrase, prose, sentence

MAKERS = Makers()

# Fit: the thresholds were chosen on these.


@MAKERS.family("garbage", "fit", 20)
def one_sign_from_the_first_token_on(dice: random.Random) -> str:
    return dice.choice("!+.?#@$%&/") * dice.randint(16, 600)


@MAKERS.family("garbage", "fit", 20)
def a_phrase_without_end(dice: random.Random) -> str:
    words = phrase(dice, dice.randint(1, 5))
    return ((words + dice.choice((" ", ", ", ". "))) * dice.randint(12, 60)).strip()


@MAKERS.family("garbage", "fit", 20)
def own_prose_that_loops_from_half_way_on(dice: random.Random) -> str:
    good = prose(dice, dice.randint(4, 16))
    loop = phrase(dice, dice.randint(2, 8)) + dice.choice((" ", ", ", "\n"))
    return f"{good} {loop * (len(good) // len(loop) + 5)}"


@MAKERS.family("garbage", "fit", 20)
def two_signs_by_turns(dice: random.Random) -> str:
    return "".join(dice.sample("+!-_*aBx01.;", 2)) * dice.randint(24, 200)


@MAKERS.family("garbage", "fit", 20)
def replacement_characters_among_words(dice: random.Random) -> str:
    share = dice.uniform(0.15, 0.8)
    words = prose(dice, 4).split()
    return " ".join("\ufffd" * dice.randint(1, 4) if dice.random() < share else word for word in words)


@MAKERS.family("garbage", "fit", 20)
def nothing_visible(dice: random.Random) -> str:
    return "".join(dice.choice(" \n\t") for _ in range(dice.choice((0, 1, 3, 40, 200))))


@MAKERS.family("garbage", "fit", 20)
def pieces_of_five_scripts(dice: random.Random) -> str:
    return _soup(dice, ("english", "russian", "chinese", "arabic", "korean"), dice.randint(40, 200))


@MAKERS.family("garbage", "fit", 20)
def one_token_id_whose_text_is_hidden(dice: random.Random) -> Answer:
    ids = [dice.randrange(40_000) for _ in range(dice.randint(1, 20))]
    run = (dice.choice((0, 2, 128_001)),) * dice.randint(len(ids) + 16, 200)
    return Answer(sentence(dice), (*ids, *run))


@MAKERS.family("garbage", "fit", 20)
def logprobs_that_are_not_numbers(dice: random.Random) -> Answer:
    fine: list[float | None] = [-dice.expovariate(1.5) for _ in range(dice.randint(8, 60))]
    fine[dice.randrange(len(fine))] = dice.choice((float("nan"), None))
    return Answer(prose(dice, 2), None, tuple(fine))


@MAKERS.family("garbage", "fit", 20)
def one_sign_opens_every_answer(dice: random.Random) -> Sample:
    sign = dice.choice(".,)]}*")
    return Sample(tuple(Answer(f"{sign} {prose(dice, 2)}") for _ in range(dice.randint(4, 12))))


# Report: no threshold was chosen on these.


@MAKERS.family("garbage", "report", 25)
def a_real_answer_that_ends_in_one_sign(dice: random.Random) -> str:
    good = answers.beginning(dice, 0.9)
    return good + dice.choice("!+#0\u2581\n)") * (dice.randint(80, 200) + len(good) // 4)


@MAKERS.family("garbage", "report", 25)
def one_letter_digit_or_picture(dice: random.Random) -> str:
    return dice.choice(("The ", "", "")) + dice.choice("aZ0的ا🙂Ġ▁") * dice.randint(48, 500)


@MAKERS.family("garbage", "report", 25)
def a_sentence_without_end(dice: random.Random) -> str:
    return (sentence(dice) + dice.choice((" ", "\n", "\n\n"))) * dice.randint(6, 30)


@MAKERS.family("garbage", "report", 25)
def a_paragraph_without_end(dice: random.Random) -> str:
    return (prose(dice, dice.randint(2, 5)) + "\n\n") * dice.randint(4, 10)


@MAKERS.family("garbage", "report", 25)
def a_real_answer_that_loops_from_half_way_on(dice: random.Random) -> str:
    good = answers.beginning(dice, 0.5)
    loop = dice.choice((" ", "\n", ", ")) + phrase(dice, dice.randint(1, 12))
    return good + loop * (max(len(good), 200) // len(loop) + 5)


@MAKERS.family("garbage", "report", 25)
def a_long_text_that_loops_near_its_end(dice: random.Random) -> str:
    good = prose(dice, dice.randint(30, 120))
    loop = " " + phrase(dice, dice.randint(1, 12))
    return good + loop * (dice.randint(120, 400) // len(loop) + 5)


@MAKERS.family("garbage", "report", 25)
def a_loop_in_the_middle_of_a_text(dice: random.Random) -> str:
    loop = " " + phrase(dice, dice.randint(2, 10))
    looping = loop * (dice.randint(250, 600) // len(loop) + 6)
    return f"{prose(dice, 12)}{looping} {prose(dice, 12)}"


@MAKERS.family("garbage", "report", 25)
def a_loop_in_another_script(dice: random.Random) -> str:
    language = dice.choice(("chinese", "japanese", "korean", "arabic", "russian", "thai", "hindi"))
    loop = dice.choice(PROSE[language])
    begin = dice.randrange(max(len(loop) - 12, 1))
    return foreign(dice, language, dice.randint(0, 2)) + loop[begin : begin + dice.randint(4, 24)] * 16


@MAKERS.family("garbage", "report", 25)
def a_loop_that_counts(dice: random.Random) -> str:
    words, begin = phrase(dice, dice.randint(4, 10)), dice.randint(1, 50)
    return "\n".join(f"{n}. {words}" for n in range(begin, begin + dice.randint(40, 80)))


@MAKERS.family("garbage", "report", 25)
def control_characters_among_words(dice: random.Random) -> str:
    signs = dice.choice(("\x00\x01\x02\x03", "\x7f\x80\x8d\x9d", "\ud800\udc41\udfff", "\u0378\u0379\u0381"))
    words = prose(dice, 4).split()
    return " ".join(word + dice.choice(signs) * dice.randint(0, 2) for word in words)


@MAKERS.family("garbage", "report", 25)
def a_real_answer_that_turns_into_replacement_characters(dice: random.Random) -> str:
    good = answers.beginning(dice, 0.8)
    return good + "".join(dice.choice(("\ufffd", "\ufffd", " ", "a")) for _ in range(len(good) // 3 + 20))


@MAKERS.family("garbage", "report", 25)
def nothing_but_invisible_signs(dice: random.Random) -> str:
    return "".join(
        dice.choice("\u200b\u200d\ufeff\u00a0\u3000\u2028\r\x1b") for _ in range(dice.randint(1, 90))
    )


@MAKERS.family("garbage", "report", 25)
def pieces_of_other_scripts(dice: random.Random) -> str:
    return _soup(dice, ("english", "greek", "hebrew", "thai", "hindi", "georgian"), dice.randint(40, 200))


@MAKERS.family("garbage", "report", 25)
def a_real_answer_that_turns_into_pieces_of_scripts(dice: random.Random) -> str:
    good = answers.beginning(dice, 0.5)
    soup = _soup(dice, ("english", "russian", "chinese", "thai", "arabic", "hebrew"), len(good.split()) + 20)
    return f"{good} {soup}"


@MAKERS.family("garbage", "report", 25)
def one_token_id_late_in_the_answer(dice: random.Random) -> Answer:
    ids = [dice.randrange(40_000) for _ in range(dice.randint(80, 300))]
    return Answer(prose(dice, 8), (*ids, *(ids[-1:] * dice.randint(64, 200))))


@MAKERS.family("garbage", "report", 25)
def logprobs_out_of_range(dice: random.Random) -> Answer:
    fine: list[float | None] = [-dice.expovariate(1.5) for _ in range(dice.randint(8, 200))]
    fine[dice.randrange(len(fine))] = dice.choice((-float("inf"), float("inf"), -3.4e38, 0.7))
    return Answer(prose(dice, 2), None, tuple(fine))


@MAKERS.family("garbage", "report", 25)
def one_word_opens_every_answer(dice: random.Random) -> Sample:
    word = dice.choice(("The", "Hitherto", "0", "<pad>", "的"))
    texts = [f"{word} {answers.beginning(dice, 1.0)}" for _ in range(dice.randint(6, 20))]
    return Sample(tuple(Answer(text) for text in texts))


@MAKERS.family("garbage", "report", 25)
def one_answer_in_twenty(dice: random.Random) -> Sample:
    place = dice.randrange(20)
    broken = dice.choice(
        (
            "!" * 200,
            answers.beginning(dice, 0.4) + " and so it goes" * 30,
            _soup(dice, ("english", "korean", "russian", "thai"), 120),
            "\ufffd" * 60,
            "",
        )
    )
    texts = [answers.beginning(dice, 1.0) for _ in range(20)]
    return Sample(tuple(Answer(broken if n == place else text) for n, text in enumerate(texts)), place)


def _soup(dice: random.Random, languages: tuple[str, ...], pieces: int) -> str:
    """Return pieces of words of several languages, half of them without a space before them."""
    soup = ""
    for _ in range(pieces):
        language = dice.choice(languages)
        text = sentence(dice) if language == "english" else dice.choice(PROSE[language])
        word = dice.choice(text.split())
        begin = dice.randrange(len(word))
        soup += (
            dice.choice(("", " "))
            + word[begin : begin + dice.randint(1, 5)]
            + dice.choice(("", "", "", ");", "_"))
        )
    return soup.strip()
