// An empty kernel: the shortest that one launch can take, stored beside every job's results.
extern "C" __global__ void launch_floor() {}
