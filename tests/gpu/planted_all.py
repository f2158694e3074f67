"""Every planted bug and every cheat."""

from planted import BUGS, read
from planted_cheats import CHEATS

FILES = ["mma.txt", "mma_arithmetic.txt", "mma_order.txt", "simt.txt", "hopper.txt"]
ALL = [mutant for name in FILES for mutant in read(BUGS / name)] + CHEATS
