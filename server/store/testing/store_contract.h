// What every implementation of Store must do: a fixture for tests against the interface alone. A test program says
// which implementations it runs them on.
#ifndef ATTUNE_SERVER_STORE_TESTING_STORE_CONTRACT_H_
#define ATTUNE_SERVER_STORE_TESTING_STORE_CONTRACT_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "server/store/store.h"
#include "server/store/testing/queue_contract.h"
#include "server/store/testing/test_directory.h"

namespace attune::store {

struct Implementation {
  std::string name;
  // Opens what an earlier store in the same directory left, or makes a new one.
  // `now` is the clock of leases.
  std::function<absl::StatusOr<std::unique_ptr<Store>>(const std::string& directory, std::function<absl::Time()> now)>
      open;
  std::string missing = {};  // why it cannot be tested here; empty: it can
};

// Of the stores under test.
inline constexpr int64_t kBlobLimit = 10 * 4096;

inline void PrintTo(const Implementation& implementation, std::ostream* out) { *out << implementation.name; }

// Each test program has its own. Durable ones keep what they have: for what a store in memory has no use for,
// retention.
std::vector<Implementation> DurableImplementations();
std::vector<Implementation> Implementations();

inline std::string ImplementationName(const testing::TestParamInfo<Implementation>& info) { return info.param.name; }

class StoreContract : public testing::TestWithParam<Implementation> {
 protected:
  void SetUp() override {
    if (!GetParam().missing.empty()) GTEST_SKIP() << GetParam().missing;
    Reopen();
  }

  void Reopen() {
    store_.reset();
    absl::StatusOr<std::unique_ptr<Store>> store =
        GetParam().open(directory_.path() + "/store", [this] { return now_; });
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }

  Store& store() { return *store_; }

  std::string Append(const v1::Trial& trial) {
    absl::StatusOr<std::string> name = store().AppendTrial(trial, {});
    EXPECT_TRUE(name.ok()) << name.status();
    return name.value_or("");
  }

  const TestDirectory directory_;
  absl::Time now_ = absl::FromUnixSeconds(1'800'000'000);  // of leases; the tests' own

 private:
  std::unique_ptr<Store> store_;
};

inline void FinishJob(Store& store, const v1::Operation& operation) { FinishJob(store.queue(), operation); }

inline constexpr char kProblem[] = "b2.h8.q512.d64.f16";
inline constexpr char kDevice[] = "cuda:0";
inline constexpr char kClass[] = "l4";

// A trial with every field set.
inline v1::Trial SampleTrial(int block_m = 64, double median_us = 40) {
  v1::Trial trial;
  trial.mutable_problem()->set_batch(2);
  trial.set_problem_text(kProblem);
  trial.set_device_id(kDevice);
  trial.set_device_uuid("GPU-0");
  v1::Variant& variant = *trial.mutable_variant();
  variant.set_family("attention_simt");
  v1::ParameterValue& parameter = *variant.add_parameters();
  parameter.set_name("BLOCK_M");
  parameter.set_value(block_m);
  variant.set_text("attention_simt:BLOCK_M=" + std::to_string(block_m));
  trial.set_policy(v1::POLICY_HOT);
  trial.set_verdict(v1::VERDICT_OK);
  trial.set_detail("settled");
  trial.mutable_timing()->set_median_us(median_us);
  trial.mutable_accuracy()->set_max_abs_error(0.001);
  trial.mutable_resources()->set_registers(96);
  trial.mutable_geometry()->set_ctas(256);
  trial.mutable_recipe()->add_launches()->set_entry("attention");
  v1::Dependencies& dependencies = *trial.mutable_dependencies();
  dependencies.set_source_hash("source 1");
  dependencies.set_toolchain("nvrtc 13.0");
  dependencies.set_driver("580.1");
  dependencies.set_device_fingerprint(kClass);
  trial.set_artifact_sha256("ab");
  trial.set_job("operations/1");
  trial.set_identical_to("trials/7");
  trial.set_compile_ms(37);
  trial.mutable_finish_time()->set_seconds(1'800'000'000);
  trial.mutable_finish_time()->set_nanos(123'456'789);
  return trial;
}

// Of another card of the class.
inline v1::Trial OfSister(v1::Trial trial) {
  trial.set_device_id("cuda:1");
  trial.set_device_uuid("GPU-1");
  return trial;
}

inline Instance InstanceOf(const v1::Trial& trial) { return {trial.device_id(), trial.device_uuid()}; }

inline TrialKey KeyOf(const v1::Trial& trial) {
  return {trial.problem_text(), InstanceOf(trial), trial.variant().text(), trial.policy(), trial.dependencies()};
}

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_TESTING_STORE_CONTRACT_H_
