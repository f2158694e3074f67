// A small family to learn of.
#ifndef ATTUNE_SERVER_FORECAST_TESTING_BLOCKS_H_
#define ATTUNE_SERVER_FORECAST_TESTING_BLOCKS_H_

#include <memory>

#include "server/catalog/testing/fake_host.h"
#include "server/space/family.h"

namespace attune::forecast {

// 8 sizes of a block of queries by 3 of keys; the guess is 16 by 64.
inline std::shared_ptr<const space::Family> Blocks() {
  return catalog::MakeFamily(R"textproto(
    name: "blocks" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    parameters { name: "BLOCK_M" values: [16, 32, 48, 64, 80, 96, 112, 128] binding: BINDING_COMPILE_TIME guess: 16 }
    parameters { name: "BLOCK_N" values: [16, 32, 64] binding: BINDING_COMPILE_TIME guess: 64 }
    launches { entry: "attention" grid_x: "ceil_div(seq_q, BLOCK_M)" block_x: "128" main: true }
    deterministic: true)textproto",
                             "blocks one");
}

}  // namespace attune::forecast

#endif  // ATTUNE_SERVER_FORECAST_TESTING_BLOCKS_H_
