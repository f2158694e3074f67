"""The ladder: what is added to attention one step at a time, from a plain kernel to the fastest that is known. Each
step is a variant of a family that exists; it differs from the one before in what the step names, and in as little else
as the family's constraints allow."""

import dataclasses

from choose import Chosen, choose, more


@dataclasses.dataclass(frozen=True)
class Step:
    name: str
    family: str
    must: dict = dataclasses.field(default_factory=dict)
    like: dict = dataclasses.field(default_factory=dict)
    goal: tuple = ()  # parameters that take the goal's values: the fastest variant


SIMT, WMMA, MMA, HOPPER = "attention_simt", "attention_wmma", "attention_mma", "attention_hopper"
FAMILIES = (SIMT, WMMA, MMA, HOPPER)
GOALS = (MMA, HOPPER)  # families whose fastest variant a ladder leads to

PLAIN = {"ACC": 32, "CP_ASYNC_STAGES": 0, "SWIZZLE": 0, "MIN_CTAS": 1, "KV_SPLITS": 1, "PERSISTENT": 0}
PLAIN_MMA = {
    "K_STAGES": 1,
    "LAZY_RESCALE": 0,
    "Q_REGISTERS": 0,
    "MIN_CTAS": 1,
    "PERSISTENT": 0,
    "LONGEST_FIRST": 0,
}
TILE = {"BLOCK_M": 64, "BLOCK_N": 64}

FIRST = [
    Step(
        "plain: FMA, 4 bytes a load, no splits", SIMT, {**PLAIN, "VEC": 4}, {"BLOCK_M": 32, "BLOCK_N": 32, "WARPS": 4}
    ),
    Step("16 bytes a load", SIMT, {**PLAIN, "VEC": 16}),
    Step("keys split among CTAs", SIMT, {"ACC": 32, "KV_SPLITS": more(1)}),
    Step("tensor cores: WMMA", WMMA, {"ACC": 32, "CP_ASYNC_STAGES": 0, "SWIZZLE": 0}, TILE),
    Step("asynchronous copies", WMMA, {"ACC": 32, "CP_ASYNC_STAGES": 1}),
    Step("two stages of them", WMMA, {"ACC": 32, "CP_ASYNC_STAGES": 2}),
    Step("mma.sync: S and P in registers, swizzled K and V", MMA, PLAIN_MMA, {**TILE, "WARPS_M": 4, "COMBINE": 1}),
]

TO_MMA = [
    Step("the fastest's buffers of K and V", MMA, goal=("K_STAGES", "V_STAGES")),
    Step("its way to rescale", MMA, goal=("LAZY_RESCALE",)),
    Step("its place for Q", MMA, goal=("Q_REGISTERS",)),
    Step("its tile", MMA, goal=("BLOCK_M", "BLOCK_N", "WARPS_M")),
    Step("its teams of warps", MMA, goal=("BLOCK_N", "WARPS_M", "WARPS_N")),
    Step("its packing of heads", MMA, goal=("PACK_GQA",)),
    Step("its splits", MMA, goal=("KV_SPLITS",)),
    Step("its way to join them", MMA, goal=("KV_SPLITS", "COMBINE")),
    Step("its launch bounds", MMA, goal=("MIN_CTAS",)),
    Step("its persistent CTAs", MMA, goal=("PERSISTENT",)),
    Step("its order of work", MMA, goal=("LONGEST_FIRST",)),
]

PLAIN_HOPPER = {"OVERLAP": 0, "ONES": 0, "SPLIT": 0, "PACK_GQA": 0, "LONGEST_FIRST": 0}
TO_HOPPER = [
    Step("wgmma, tensor copies by a warp of their own", HOPPER, PLAIN_HOPPER, {"CONSUMERS": 2, "BLOCK_N": 64}),
    Step("products of the next logits beside softmax", HOPPER, {"OVERLAP": 1, "PINGPONG": 0, "STAGES": 2}),
    Step("the fastest's turns of consumers", HOPPER, goal=("OVERLAP", "PINGPONG")),
    Step("its consumers", HOPPER, goal=("CONSUMERS", "PINGPONG")),
    Step("its keys a tile", HOPPER, goal=("CONSUMERS", "BLOCK_N", "PINGPONG")),
    Step("its sums of weights", HOPPER, goal=("ONES", "CONSUMERS", "BLOCK_N")),
    Step("its buffers", HOPPER, goal=("STAGES", "BLOCK_N")),
    Step("its teams", HOPPER, goal=("TEAMS", "CONSUMERS", "BLOCK_N")),
    Step("its packing of heads", HOPPER, goal=("PACK_GQA",)),
    Step("its splits", HOPPER, goal=("SPLIT", "KV_SPLITS")),
    Step("its order of work", HOPPER, goal=("LONGEST_FIRST",)),
]

# The fastest with one thing otherwise: what each is worth where everything else is in place.
AROUND_MMA = [
    ("one buffer of K and of V", {"K_STAGES": 1, "V_STAGES": 1}),
    ("two buffers of both", {"K_STAGES": 2, "V_STAGES": 2}),
    ("rescaling in each step", {"LAZY_RESCALE": 0}),
    ("rescaling when the maximum has grown", {"LAZY_RESCALE": 1}),
    ("Q in registers", {"Q_REGISTERS": 1}),
    ("no teams", {"WARPS_N": 1}),
    ("teams", {"WARPS_N": more(1)}),
    ("no splits", {"KV_SPLITS": 1}),
    ("splits joined by a launch", {"COMBINE": 1}),
    ("persistent CTAs", {"PERSISTENT": more(0), "LONGEST_FIRST": 0}),
    ("longest first", {"LONGEST_FIRST": 1}),
]
AROUND_HOPPER = [
    ("no overlap of a consumer's products and softmax", {"OVERLAP": 0}),
    ("consumers as they come", {"PINGPONG": 0, "OVERLAP": 1}),
    ("consumers in turn", {"PINGPONG": 1}),
    ("rescaling in each step", {"LAZY_RESCALE": 0}),
    ("weights added up", {"ONES": 0, "OVERLAP": 1}),
    ("one consumer", {"CONSUMERS": 1}),
    ("two consumers", {"CONSUMERS": 2, "TEAMS": 1}),
    ("three consumers", {"CONSUMERS": 3}),
    ("three buffers", {"STAGES": 3}),
    ("no teams", {"TEAMS": 1}),
    ("teams", {"TEAMS": 2}),
    ("heads by themselves", {"PACK_GQA": 0}),
    ("packed heads", {"PACK_GQA": 1}),
    ("no splits", {"SPLIT": 0}),
    ("head by head", {"LONGEST_FIRST": 0}),
    ("longest first", {"LONGEST_FIRST": 1}),
]
LAST = "the fastest"
SO_ALREADY = "nothing changes"


@dataclasses.dataclass(frozen=True)
class Row:
    step: str
    variant: str = ""
    family: str = ""
    parameters: dict = dataclasses.field(default_factory=dict)
    verdict: str = ""
    us: float = 0.0
    ctas: int = 0
    registers: int = 0
    why_not: str = ""  # no variant was tried


def next_variant(step, variants, before, goal, wanted_splits):
    """(Chosen, "") or (None, why there is none). `before` is the last Chosen, maybe of another family."""
    wanted = {name: goal.parameters[name] for name in step.goal} if goal else {}
    if step.goal and goal is None:
        return None, "the family has no fastest variant here"
    if not variants:
        return None, "the family does not offer it"
    names = variants[0].parameters
    known = {name: value for name, value in (before.parameters if before else {}).items() if name in names}
    like = {**known, **{name: value for name, value in step.like.items() if name in names}}
    if "KV_SPLITS" in step.must and callable(step.must["KV_SPLITS"]):
        like["KV_SPLITS"] = wanted_splits
    chosen = choose(variants, {**wanted, **step.must}, like)
    if chosen is None:
        return None, "no variant of it makes sense here"
    if before and chosen.text == before.text:
        return None, SO_ALREADY
    return chosen, ""


def family_of(chosen):
    return chosen.text.partition(":")[0]


def climb(spaces, goal, attempt, sm_count):
    """Rows of all steps that change something. `spaces`: family to its variants; `goal`: the fastest variant of one of
    GOALS, or None; `attempt` tries a Chosen and returns (verdict, us, ctas, registers)."""
    before, ctas = None, 0
    for step in [*FIRST, *(TO_HOPPER if goal and family_of(goal) == HOPPER else TO_MMA)]:
        wanted_splits = max(2, 4 * sm_count // ctas) if ctas else 2
        chosen, why_not = next_variant(step, spaces[step.family], before, goal, wanted_splits)
        if chosen is None:
            if why_not != SO_ALREADY:
                yield Row(step.name, why_not=why_not)
            continue
        row = tried(step.name, step.family, chosen, attempt)
        yield row
        if row.verdict == "OK":
            before, ctas = chosen, row.ctas
    if goal and (before is None or goal.text != before.text):
        yield tried(LAST, family_of(goal), Chosen(goal.text, goal.parameters), attempt)


def tried(name, family, chosen, attempt):
    verdict, us, ctas, registers = attempt(chosen)
    return Row(name, chosen.text, family, chosen.parameters, verdict, us, ctas, registers)


def around(variants, goal, attempt):
    """Rows of the fastest's neighbours; what it has already, or no variant has, is left out."""
    for name, must in AROUND_HOPPER if family_of(goal) == HOPPER else AROUND_MMA:
        chosen = choose([variant for variant in variants if variant.text != goal.text], must, goal.parameters)
        already = choose([goal], must) is not None
        if chosen is not None and not already:
            yield tried(name, family_of(goal), chosen, attempt)


def changes(row, before):
    """Which parameters differ from the row before."""
    if before is None:
        return row.family
    differ = [
        f"{name} {before.parameters[name]} to {value}"
        for name, value in row.parameters.items()
        if before.parameters.get(name, value) != value
    ]
    return ", ".join(([] if row.family == before.family else [row.family]) + differ)


def table(rows, baselines):
    """Markdown. `baselines`: contender to microseconds."""
    flash = next((us for name, us in baselines.items() if "flash" in name), None)
    yield "| step | changes | us | over the step before | over the first | SDPA flash over it | CTAs | registers |"
    yield "|---|---|---|---|---|---|---|---|"
    first = before = None
    for row in rows:
        if row.why_not:
            yield f"| {row.step} | - | {row.why_not} | | | | | |"
            continue
        if row.verdict != "OK":
            yield f"| {row.step} | {changes(row, before)} | {row.verdict} | | | | {row.ctas} | {row.registers} |"
            continue
        first = first or row
        gain = f"{before.us / row.us:.2f}x" if before else ""
        beside = f"{flash / row.us:.2f}x" if flash else ""
        yield (
            f"| {row.step} | {changes(row, before)} | {row.us:,.2f} | {gain} | {first.us / row.us:.2f}x | {beside} | "
            f"{row.ctas:,} | {row.registers} |"
        )
        before = row
    for name, us in sorted(baselines.items(), key=lambda item: item[1]):
        yield f"| *{name}* | | {us:,.2f} | | | {f'{flash / us:.2f}x' if flash else ''} | | |"


def around_table(rows, fastest):
    """Markdown. `fastest`: its Row."""
    yield "| the fastest, but with | changes | us | over the fastest's time |"
    yield "|---|---|---|---|"
    for row in rows:
        if row.verdict == "OK":
            yield f"| {row.step} | {changes(row, fastest)} | {row.us:,.2f} | {row.us / fastest.us:.2f}x |"
        else:
            yield f"| {row.step} | {changes(row, fastest)} | {row.verdict} | |"
