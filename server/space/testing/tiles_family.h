// A family of three parameters.
#ifndef ATTUNE_SERVER_SPACE_TESTING_TILES_FAMILY_H_
#define ATTUNE_SERVER_SPACE_TESTING_TILES_FAMILY_H_

#include <memory>
#include <string>

#include "gtest/gtest.h"
#include "proto/attune/problem.h"
#include "server/space/manifest.h"
#include "server/space/space.h"

namespace attune::space {

inline constexpr char kTiles[] = R"pb(
  name: "tiles"
  operation: OPERATION_KIND_ATTENTION_FORWARD
  backend: BACKEND_CUDA
  sources: "tiles.cu"
  parameters {
    name: "BLOCK_M"
    values: [ 16, 32, 64 ]
    guess: 32
    binding: BINDING_COMPILE_TIME
  }
  parameters {
    name: "WARPS"
    values: [ 1, 2, 4 ]
    guess: 2
    binding: BINDING_COMPILE_TIME
  }
  parameters {
    name: "KV_SPLITS"
    values: [ 1, 2, 4, 8 ]
    guess: 1
    binding: BINDING_LAUNCH_TIME
  }
  lets { name: "tiles" expr: "ceil_div(seq_q, BLOCK_M)" }
  lets { name: "rows" expr: "batch * heads_q * seq_q" }
  problem_limits { expr: "softcap == 0" reason: "no softcap" }
  constraints { expr: "BLOCK_M >= 16 * WARPS" reason: "a warp needs 16 rows" }
  constraints { expr: "KV_SPLITS <= ceil_div(seq_kv, 64)" reason: "splits without keys" }
  defines { name: "HEAD_DIM" expr: "head_dim" }
  scratch { name: "partial" bytes: "KV_SPLITS > 1 ? KV_SPLITS * rows * 4 : 0" zero: true }
  launches {
    entry: "combine"
    when: "KV_SPLITS > 1"
    grid_x: "rows"
    args { scratch: "partial" }
  }
  launches {
    entry: "attend"
    main: true
    grid_x: "tiles * KV_SPLITS"
    grid_y: "batch * heads_q"
    block_x: "WARPS * 32"
    dynamic_shared_bytes: "BLOCK_M * head_dim * 2"
    args { buffer: BUFFER_ROLE_Q }
    args { i32: "seq_q" }
    args { i64: "rows" }
    args { f32: "1 / sqrt(head_dim)" }
    args { scratch: "partial" }
  }
)pb";

inline std::shared_ptr<const Family> Make(const std::string& manifest) {
  auto family = std::make_shared<Family>();
  family->manifest = *ParseManifest(manifest);
  EXPECT_TRUE(CheckManifest(family->manifest).ok()) << CheckManifest(family->manifest);
  family->source_hash = "0123";
  return family;
}

inline const Problem kProblem = *ParseProblem("b2.h8.q512.d64.f16");

inline Variant Tiles(const std::shared_ptr<const Family>& family, int64_t block_m, int64_t warps, int64_t splits) {
  return {family, {block_m, warps, splits}};
}

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_TESTING_TILES_FAMILY_H_
