// Writes a snapshot of paged bf16 problems whose kernels the fake driver computes: fake_snapshot FILE PROBLEM...
#include <iostream>

#include "absl/time/clock.h"
#include "client/cpp/launch/testing/answers.h"
#include "client/cpp/snapshot.h"
#include "server/device/cuda/testing/fake_cuda.h"

int main(int argc, char** argv) {
  attune::v1::ListDevicesResponse devices;
  attune::v1::Device& device = *devices.add_devices();
  device.set_id("cuda:0");
  device.set_backend(attune::v1::BACKEND_CUDA);
  device.set_model(attune::device::cuda::testing::kFakeModel);
  std::vector<attune::SnapshotAnswer> answers;
  for (int i = 2; i < argc; ++i) {
    attune::SnapshotAnswer& entry = answers.emplace_back();
    entry.answer = std::make_shared<const attune::v1::GetBestResponse>(attune::launch::testing::PlainPaged(argv[i]));
    *entry.request.mutable_problem() = entry.answer->problem();
    entry.request.set_device_id("cuda:0");
    entry.request.set_policy(attune::v1::POLICY_HOT);
  }
  const absl::Status written = attune::Snapshot(absl::Now(), devices, std::move(answers)).Write(argv[1]);
  if (!written.ok()) std::cerr << written << "\n";
  return written.ok() ? 0 : 1;
}
