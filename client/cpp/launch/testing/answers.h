// Answers whose kernels the fake driver (server/device/cuda/testing/fake_cuda.h) knows, and somebody who gives them.
#ifndef ATTUNE_CLIENT_CPP_LAUNCH_TESTING_ANSWERS_H_
#define ATTUNE_CLIENT_CPP_LAUNCH_TESTING_ANSWERS_H_

#include <atomic>
#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "absl/status/status.h"
#include "client/cpp/launch/answers.h"
#include "client/cpp/launch/tensors.h"

namespace attune::launch::testing {

// An answer to `problem` of one launch, "main", of Q, K, V and O, and of I32 `mark`, by which launches can be told
// apart.
v1::GetBestResponse OneLaunch(const std::string& problem, int mark = 0);
// Of two, "main" and "combine", of O, scratch 0 of `bytes` and scratch 1 of `zeroed` bytes, which must be zero, each.
v1::GetBestResponse TwoLaunches(const std::string& problem, int64_t bytes, int64_t zeroed);
// Paged bf16 decode attention that the fake driver computes, in two launches.
v1::GetBestResponse PlainPaged(const std::string& problem);
// Sets the artifact: a fake module that has the recipe's kernels.
void GiveCode(v1::GetBestResponse& answer);

inline const Stream kStreamOfATest = reinterpret_cast<Stream>(0x70);
inline constexpr absl::Duration kSoon = absl::Seconds(30);  // what a test waits for, at most
inline constexpr Tensors kTensorsOfATest = {.q = 0x1000, .k = 0x2000, .v = 0x3000, .o = 0x4000};

// Thread-safe: `answers` of a runtime, changed from outside.
class FakeAnswers : public Answers {
 public:
  struct Served {
    std::mutex mutex;
    std::condition_variable changed;
    std::map<std::string, absl::StatusOr<v1::GetBestResponse>> answers;  // by the problem; none: NotFound
    std::map<std::string, v1::GetBestResponse> kept;
    absl::Status unreachable;      // when not OK, of every question
    bool blocked = false;          // questions wait until it is false
    std::atomic<int> waiting = 0;  // questions, until it is false
    int questions = 0;
    int with_code = 0;  // of them
  };
  explicit FakeAnswers(std::shared_ptr<Served> served) : served_(std::move(served)) {}
  absl::StatusOr<AnswerPtr> Ask(const Problem& problem, bool without_code) override;
  absl::StatusOr<AnswerPtr> Kept(const Problem& problem) override;

 private:
  const std::shared_ptr<Served> served_;
};

}  // namespace attune::launch::testing

#endif  // ATTUNE_CLIENT_CPP_LAUNCH_TESTING_ANSWERS_H_
