// Includes itself.
#include "endless.cuh"
