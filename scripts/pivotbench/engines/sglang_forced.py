"""Teacher forcing on SGLang, whose /generate tells the log probabilities of the prompt itself."""

from __future__ import annotations

from pivotbench.engines.forced import LONGEST_TOKENS, Forced, NoAnswer, asked, boundary, number, unreadable


def teacher_logprobs(url: str, prompt: str, continuation: str) -> Forced:
    """Return the log probabilities of the continuation's first tokens after the prompt.

    They come out of prefill kernels. ``logprob_start_len: 0`` keeps the prefix cache from hiding any.
    """
    try:
        whole = _tokens(url, prompt + continuation)
        begin = boundary(_tokens(url, prompt), whole)
        body = {
            "input_ids": whole[: begin + LONGEST_TOKENS],
            "sampling_params": {"max_new_tokens": 1, "temperature": 0},
            "return_logprob": True,
            "logprob_start_len": 0,
        }
        told = asked(f"{url}/generate", body)["meta_info"]["input_token_logprobs"]
        if [entry[1] for entry in told] != body["input_ids"]:
            raise NoAnswer(f"logprobs of {len(told)} tokens were told, not of the {len(whole)} asked for")
        values = tuple(number(entry[0]) for entry in told[begin:])
    except (ArithmeticError, LookupError, TypeError) as error:
        return unreadable(error)
    except NoAnswer as error:
        return Forced(None, why=str(error))
    return Forced(values)


def _tokens(url: str, text: str) -> list[int]:
    return list(asked(f"{url}/v1/tokenize", {"prompt": text})["tokens"])
