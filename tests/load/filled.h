// What fill_store fills a store with.
#ifndef ATTUNE_TESTS_LOAD_FILLED_H_
#define ATTUNE_TESTS_LOAD_FILLED_H_

#include <string>

#include "attune/v1/device.pb.h"
#include "proto/attune/problem.h"
#include "server/base/sha256.h"

namespace attune {

// The `number`-th problem, from 0.
inline Problem FilledProblem(int number) {
  Problem problem;
  problem.batch = 1 + number % 100;
  problem.heads_q = problem.heads_kv = 8;
  problem.seq_q = problem.seq_kv = 512 + number / 100;
  return problem;
}

// A card that all of it was found on.
inline v1::Device FilledDevice() {
  v1::Device device;
  device.set_id("cuda:0");
  device.set_backend(v1::BACKEND_CUDA);
  device.set_model("NVIDIA Load");
  device.set_driver("580.159.04");
  device.set_target("sm_90");
  device.set_class_alias("load");
  device.set_fingerprint(Sha256("device"));
  return device;
}

}  // namespace attune

#endif  // ATTUNE_TESTS_LOAD_FILLED_H_
