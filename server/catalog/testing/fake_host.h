// A host for tests: one device, and families that compile to nothing.
#ifndef ATTUNE_SERVER_CATALOG_TESTING_FAKE_HOST_H_
#define ATTUNE_SERVER_CATALOG_TESTING_FAKE_HOST_H_

#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "server/catalog/host.h"

namespace attune::catalog {

inline std::shared_ptr<const space::Family> MakeFamily(const std::string& manifest, const std::string& hash) {
  auto family = std::make_shared<space::Family>();
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(manifest, &family->manifest));
  family->sources = {{"kernel.cu", "// nothing"}};
  family->source_hash = hash;
  return family;
}

// Variants BLOCK 16, 32, 64 by SPLITS 1, 2; only for seq_q up to 1024.
inline std::shared_ptr<const space::Family> SearchFamily(const std::string& hash = "source one",
                                                         const std::string& blocks = "16, 32, 64") {
  return MakeFamily(absl::StrCat(R"(
    name: "tiles" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    parameters { name: "BLOCK" values: [)",
                                 blocks, R"(] binding: BINDING_COMPILE_TIME guess: 32 }
    parameters { name: "SPLITS" values: [1, 2] binding: BINDING_LAUNCH_TIME guess: 1 }
    problem_limits { expr: "seq_q <= 1024" reason: "seq_q at most 1024" }
    launches { entry: "attention" grid_x: "ceil_div(seq_q, BLOCK) * SPLITS" block_x: "128" main: true }
    deterministic: true)"),
                    hash);
}

inline std::vector<std::shared_ptr<const space::Family>> Families(std::shared_ptr<const space::Family> search) {
  return {std::move(search),
          MakeFamily(R"(
    name: "reference" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    parameters { name: "PLAIN" values: [0, 1] binding: BINDING_COMPILE_TIME }
    launches { entry: "reference" grid_x: "seq_q" block_x: "128" main: true } role: ROLE_REFERENCE)",
                     "reference"),
          MakeFamily(R"(
    name: "floor" operation: OPERATION_KIND_ATTENTION_FORWARD backend: BACKEND_CUDA sources: "kernel.cu"
    launches { entry: "empty" grid_x: "1" block_x: "32" main: true } role: ROLE_FLOOR)",
                     "floor")};
}

inline v1::Device FakeDevice() {
  v1::Device device;
  device.set_id("cuda:0");
  device.set_backend(v1::BACKEND_CUDA);
  device.set_model("NVIDIA L4");
  device.set_driver("580.1");
  device.set_target("sm_89");
  device.set_fingerprint("an L4");
  device.set_compute_units(58);
  device.set_warp_size(32);
  device.set_max_threads_per_block(1024);
  device.set_max_warps_per_sm(48);
  device.set_max_blocks_per_sm(24);
  device.set_registers_per_sm(65536);
  device.set_max_registers_per_thread(255);
  device.set_shared_bytes_per_block(101376);
  device.set_shared_bytes_per_sm(102400);
  device.set_l2_bytes(48 << 20);
  device.set_memory_bytes(int64_t{24} << 30);
  device.set_compute_capability(89);
  return device;
}

// A search family of three compile-time by two launch-time values, reference and floor, on FakeDevice.
inline Host FakeHost(std::vector<std::shared_ptr<const space::Family>> families = Families(SearchFamily())) {
  Host host;
  host.devices = {FakeDevice()};
  v1::BackendStatus& backend = host.backends.emplace_back();
  backend.set_backend(v1::BACKEND_CUDA);
  backend.set_available(true);
  backend.set_compiler("fakec 1.0");
  host.families = std::move(families);
  return host;
}

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_TESTING_FAKE_HOST_H_
