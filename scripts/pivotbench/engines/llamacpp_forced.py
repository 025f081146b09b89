"""Teacher forcing on llama.cpp's server, which tells no log probabilities of a prompt.

So the text is gone through step by step: for each token of the continuation one more token is generated after
all that comes before it, and the known next token is looked up among the likeliest. The prompt cache makes a
step cost one token. A token beyond the list is bounded by the list's last.
"""

from __future__ import annotations

from pivotbench.engines.forced import LONGEST_TOKENS, Forced, NoAnswer, asked, boundary, number, unreadable

# A list of 200 reaches down to -7 to -12 nats and costs a step nothing that can be measured; one of 1,000
# reaches 3 nats farther for 5 ms of 20, the whole vocabulary of 49,152 takes 0.8 s.
LISTED_TOKENS = 200


def teacher_logprobs(url: str, prompt: str, continuation: str) -> Forced:
    """Return the log probabilities of the continuation's first tokens after the prompt."""
    try:
        whole = _tokens(url, prompt + continuation)
        begin = boundary(_tokens(url, prompt), whole)
        values: list[float | None] = []
        at_most = []
        for place in range(begin, min(len(whole), begin + LONGEST_TOKENS)):
            value, listed = _next_token(url, whole[:place], whole[place])
            if not listed:
                at_most.append(place - begin)
            values.append(value)
    except (ArithmeticError, LookupError, TypeError) as error:
        return unreadable(error)
    except NoAnswer as error:
        return Forced(None, why=str(error))
    return Forced(tuple(values), tuple(at_most))


def _tokens(url: str, text: str) -> list[int]:
    return list(asked(f"{url}/tokenize", {"content": text, "add_special": True})["tokens"])


def _next_token(url: str, before: list[int], token: int) -> tuple[float | None, bool]:
    """Return the token's logprob after ``before``, or the list's last; and whether it was listed."""
    body = {
        "prompt": before,
        "n_predict": 1,
        "n_probs": LISTED_TOKENS,
        "temperature": 0,
        "cache_prompt": True,
        "id_slot": 0,
    }
    listed = asked(f"{url}/completion", body)["completion_probabilities"][0]["top_logprobs"]
    for entry in listed:
        if entry["id"] == token:
            return number(entry["logprob"]), True
    return number(listed[-1]["logprob"]), False
