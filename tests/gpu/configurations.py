"""Variants as Kernel Tuner takes them, from the daemon's recipes: definitions, launches, arguments. Needs neither.

Kernel Tuner tunes one kernel: a recipe has a single launch here, of a one-dimensional block, without tensor maps,
clusters or overlap. The list is given to it as one parameter, "variant", which is an index: so that it searches nothing
and rejects nothing. The block's size must be a parameter of its own and is restricted to the variant's.

A space is plain values, to be written as JSON; what is of a variant stands in lists, in the order of `variants`.
"""

import pathlib

import planted

VARIANT, THREADS = "variant", "block_size_x"  # Kernel Tuner's own name for a block's first side


def only_launch(variant, recipe):
    """The recipe's launch. ValueError where Kernel Tuner cannot do what the recipe says."""
    if len(recipe.launches) != 1:
        raise ValueError(f"{variant} has {len(recipe.launches)} launches; Kernel Tuner tunes one kernel")
    launch = recipe.launches[0]
    if tuple(launch.block[1:]) != (1, 1):
        raise ValueError(f"{variant} has a block of {tuple(launch.block)}; only the first side may be more than 1")
    if launch.cluster or launch.overlaps_previous or any(arg.kind == "TENSOR_MAP" for arg in launch.args):
        raise ValueError(f"{variant} has a cluster, an overlap or a tensor map; Kernel Tuner knows none of these")
    return launch


def argument(arg, recipe):
    """[kind, value]; the value of scratch is its bytes and whether it begins as zero."""
    if arg.kind != "SCRATCH":
        return [arg.kind, arg.value]
    buffer = recipe.scratch[arg.value]
    return [arg.kind, [buffer.bytes, buffer.zero_before_first_run]]


def space(problem, family, recipes):
    """`recipes`: {variant of attune.values: its recipe}, in the order in which the variants are tried."""
    launches = {variant.text: only_launch(variant.text, recipe) for variant, recipe in recipes.items()}
    entries = {launch.entry for launch in launches.values()}
    arguments = [[argument(arg, recipe) for arg in recipe.launches[0].args] for recipe in recipes.values()]
    kinds = {tuple(kind for kind, _ in each) for each in arguments}
    if len(entries) != 1 or len(kinds) != 1:
        raise ValueError(f"{problem}: one kernel with one list of arguments is allowed, not {sorted(entries)}")
    folder = planted.KERNELS / family
    return {
        "problem": problem,
        "entry": entries.pop(),
        "source": str(folder / f"{family}.cu"),
        "includes": [str(folder), str(planted.KERNELS)],
        "variants": list(launches),
        "defines": [definitions(problem, variant) for variant in recipes],
        "grids": [list(launch.grid) for launch in launches.values()],
        "threads": [launch.block[0] for launch in launches.values()],
        "shared_bytes": [launch.dynamic_shared_bytes for launch in launches.values()],
        "arguments": arguments,
    }


def first(space, count):
    """The space's first variants alone."""
    of_variants = ("variants", "defines", "grids", "threads", "shared_bytes", "arguments")
    return space | {name: space[name][:count] for name in of_variants}


def definitions(problem, variant):
    """{name: value} that the variant's code is compiled with."""
    unchanged = {"kind": "", "name": "", "file": "", "old": "", "new": ""}
    return planted.code_defines(
        planted.Mutant(family=variant.family, problem=problem, variant=dict(variant.parameters), **unchanged)
    )


def tune_params(space):
    """Kernel Tuner's parameters and their values."""
    return {VARIANT: list(range(len(space["variants"]))), THREADS: sorted(set(space["threads"]))}


def restriction(space):
    """Whether the block is the variant's. No lambda: Kernel Tuner reads a lambda's text, not what it closes over."""

    def fits(variant, block_size_x):
        return space["threads"][variant] == block_size_x

    return fits


def of_variant(values):
    """A function of Kernel Tuner's parameters."""
    return lambda params: values[params[VARIANT]]


def define_functions(space):
    """{name: function of Kernel Tuner's parameters}: these and no others are defined, so that variants which differ in
    their launch alone are one code to its compiler's cache."""
    names = space["defines"][0]
    return {name: of_variant([defines[name] for defines in space["defines"]]) for name in names}


def arguments(space, buffers, numbers, scratch, tunable):
    """The kernel's arguments as Kernel Tuner takes them.

    `buffers`: {role: array}; a role that is not there is a null pointer. `numbers`: {"I32": constructor, ...}, and
    "NULL" for a null pointer. `scratch(bytes)` makes an array of zeros, which all variants that use it share.
    `tunable(function, {option: value})` is an argument that depends on the parameters, by the function's result.
    """
    null = numbers["NULL"](0)

    def whole(kind, values):
        if kind == "SCRATCH":
            sizes = [size for size, _ in values]
            if not any(sizes):
                return null
            return choice([size > 0 for size in sizes], {False: null, True: scratch(max(sizes))})
        if kind in numbers:
            return choice(values, {value: numbers[kind](value) for value in values})
        return buffers.get(kind, null)

    def choice(values, options):
        if len(set(values)) == 1:
            return options[values[0]]
        return tunable(of_variant(values), {value: options[value] for value in set(values)})

    columns = zip(*space["arguments"], strict=True)
    return [whole(column[0][0], [value for _, value in column]) for column in columns]


def position(space, role):
    """Of a buffer among the arguments."""
    return [kind for kind, _ in space["arguments"][0]].index(role)


def compiler_options(space, toolkit):
    """Beside definitions, as the daemon has them; the target is Kernel Tuner's choice."""
    includes = [*space["includes"], str(pathlib.Path(toolkit, "include"))]
    return ["--std=c++17", *(f"-I{folder}" for folder in includes)]
