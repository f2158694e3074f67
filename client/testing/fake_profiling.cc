// The fake server's profiles and sanitizer runs.
#include "client/testing/fake_attune.h"

namespace attune::testing {

v1::Profile CannedProfile() {
  v1::Profile profile;
  v1::KernelProfile& kernel = *profile.add_kernels();
  kernel.set_entry("attention");
  for (const auto& [name, value] : {std::pair("duration_us", 41.2), std::pair("sm_throughput", 0.62),
                                    std::pair("dram_throughput", 0.912), std::pair("bank_conflicts", 1234.0)}) {
    v1::Counter& counter = *kernel.add_counters();
    counter.set_name(name);
    counter.set_value(value);
  }
  v1::Stall& stall = *kernel.add_stalls();
  stall.set_reason("long_scoreboard");
  stall.set_share(0.75);
  profile.set_operation("operations/7");
  return profile;
}

v1::Operation EndedProfile() {
  v1::Operation operation;
  operation.set_name("operations/7");
  operation.set_state(v1::Operation::STATE_SUCCEEDED);
  operation.set_done(true);
  *operation.mutable_profile()->mutable_trial() = CannedTrial(1);
  *operation.mutable_profile()->mutable_trial()->mutable_profile() = CannedProfile();
  operation.mutable_profile()->set_bound("DRAM, at 91 % of its peak");
  return operation;
}

v1::Operation EndedSanitizing(bool clean) {
  v1::Operation operation;
  operation.set_name("operations/7");
  operation.set_state(v1::Operation::STATE_SUCCEEDED);
  operation.set_done(true);
  v1::SanitizeResult& result = *operation.mutable_sanitize();
  *result.mutable_trial() = CannedTrial(1);
  v1::SanitizerRun& run = *result.mutable_trial()->mutable_sanitizing()->add_runs();
  run.set_tool(v1::SANITIZER_TOOL_MEMCHECK);
  if (!clean) {
    run.set_errors(2);
    run.add_findings("Invalid __global__ read of size 2 bytes; at attention+0x60");
  }
  result.set_clean(clean);
  result.set_reason(clean ? "clean under memcheck" : "memcheck reports 2 errors");
  return operation;
}

grpc::Status FakeAttune::Profile(grpc::ServerContext*, const v1::ProfileRequest* request, v1::Operation* operation) {
  if (grpc::Status status = Enter("Profile"); !status.ok()) return status;
  {
    const std::lock_guard lock(mutex_);
    last_profile_ = *request;
  }
  return Start("profile", operation);
}

grpc::Status FakeAttune::Sanitize(grpc::ServerContext*, const v1::SanitizeRequest* request, v1::Operation* operation) {
  if (grpc::Status status = Enter("Sanitize"); !status.ok()) return status;
  {
    const std::lock_guard lock(mutex_);
    last_sanitize_ = *request;
  }
  return Start("sanitize", operation);
}

void FakeAttune::HasProfiles() {
  const std::lock_guard lock(mutex_);
  has_profiles_ = true;
}

v1::ProfileRequest FakeAttune::last_profile() const {
  const std::lock_guard lock(mutex_);
  return last_profile_;
}

v1::SanitizeRequest FakeAttune::last_sanitize() const {
  const std::lock_guard lock(mutex_);
  return last_sanitize_;
}

}  // namespace attune::testing
