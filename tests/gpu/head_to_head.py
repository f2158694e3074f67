"""One variant against another: play-offs of the two alone, again and again, and what they say together.

`attune evaluate` plays a variant off against the incumbent (docs/measuring.md, "Comparing"), which is pinned here so
that it stays. The daemon tells its answer and each one's time over the rounds that both were in, but not the interval
of the gain. So the two play off several times, each time with code loaded and inputs prepared anew, and the interval is
that of these gains, by Student's t.
"""

import math
import statistics

# Of Student's t, 97.5 %, by degrees of freedom from 1.
T_975 = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145)
LEAST_GAIN, SAME = 0.005, 0.01  # as the daemon has them (server/measure/paired_rounds.h)


def gain_of(ratios):
    """How much faster the challenger is, {"low", "middle", "high"} (0.02: 2 %), from each play-off's ratio of the
    other's time to its own. One play-off has no interval: its ends are None."""
    logs = [math.log(ratio) for ratio in ratios]
    middle = statistics.fmean(logs)
    if len(logs) < 2:
        return {"low": None, "middle": math.expm1(middle), "high": None}
    half = T_975[min(len(logs) - 1, len(T_975)) - 1] * statistics.stdev(logs) / math.sqrt(len(logs))
    return {"low": math.expm1(middle - half), "middle": math.expm1(middle), "high": math.expm1(middle + half)}


def answer_of(gain):
    """FASTER, SAME, SLOWER or UNCLEAR, by the daemon's rule."""
    if gain["low"] is None:
        return "UNCLEAR"
    if gain["low"] > LEAST_GAIN:
        return "FASTER"
    if gain["low"] > -SAME and gain["high"] < SAME:
        return "SAME"
    return "SLOWER" if 1 / (1 + gain["high"]) - 1 > LEAST_GAIN else "UNCLEAR"


def daemons_answer(evaluation):
    """What the daemon says of the challenger against the pinned incumbent; empty where it was not compared."""
    trial, incumbent, reason = evaluation["trial"], evaluation["incumbent"], evaluation["reason"] or ""
    if incumbent is None or evaluation["speedup"] is None:
        return ""
    if trial["contended"] or incumbent["contended"]:
        return "CONTENDED"
    for words, answer in (
        ("it is pinned, though", "FASTER"),
        ("statistically tied", "SAME"),
        ("it is unclear", "UNCLEAR"),
        ("no challenger is faster", "SLOWER"),
    ):
        if words in reason:
            return answer
    return ""


def compare(setup, daemon, problem, served, challenger, count):
    """{"gain", "answer", "daemon", "play_offs", "error"}: `challenger` against `served` in `count` play-offs.

    `served` is pinned meanwhile, and served afterwards, too. One and the same variant is the SAME without a play-off.
    """
    if served == challenger:
        return {"gain": {"low": 0.0, "middle": 0.0, "high": 0.0}, "answer": "SAME", "daemon": [], "play_offs": [],
                "error": None}  # fmt: skip
    lines, error = setup.ask(daemon, "--quiet", "serve", problem, served, "--why=head to head")
    if not lines or lines[-1].get("decision") != "PINNED":
        return failed(f"serve {served}: {error or lines[-1].get('reason')}")
    try:
        play_offs = [play_off(setup, daemon, problem, challenger) for _ in range(count)]
    finally:
        setup.ask(daemon, "serve", problem, "--unpin")
    return taken_together(play_offs)


def play_off(setup, daemon, problem, challenger):
    lines, error = setup.ask(daemon, "--quiet", "evaluate", problem, challenger)
    if not lines or lines[-1]["type"] != "evaluation":
        return {"answer": "", "ratio": None, "cycles": None, "reason": error}
    evaluation = lines[-1]
    return {
        "answer": daemons_answer(evaluation),
        "ratio": evaluation["speedup"],
        "cycles": evaluation["trial"]["cycles"],
        "reason": evaluation["reason"],
    }


def taken_together(play_offs):
    """Contended ones do not count."""
    counted = [each for each in play_offs if each["answer"] not in ("", "CONTENDED")]
    if not counted:
        return failed("; ".join(sorted({each["reason"] for each in play_offs})), play_offs)
    gain = gain_of([each["ratio"] for each in counted])
    answers = [each["answer"] for each in play_offs]
    return {"gain": gain, "answer": answer_of(gain), "daemon": answers, "play_offs": play_offs, "error": None}


def failed(error, play_offs=()):
    return {"gain": None, "answer": "", "daemon": [], "play_offs": list(play_offs), "error": error}


def text_of(result):
    """A cell of a report: "+0.42 % [-0.10, +0.94] SAME"."""
    if result["gain"] is None:
        return f"not compared: {result['error']}"
    low, middle, high = (result["gain"][end] for end in ("low", "middle", "high"))
    interval = f" [{100 * low:+.2f}, {100 * high:+.2f}]" if low is not None else ""
    return f"{100 * middle:+.2f} %{interval} {result['answer']}"
