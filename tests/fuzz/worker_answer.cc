// An answer that a worker gives, and what the daemon believes of it.
#include <cmath>
#include <string>

#include "attune/v1/trial.pb.h"
#include "server/base/device_profile.h"
#include "server/space/space.h"
#include "server/supervisor/answers.h"
#include "tests/fuzz/message_input.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

using worker::v1::Request;
using worker::v1::Response;

// One of each kind.
std::vector<Request> RequestsFor(const Response& response) {
  std::vector<Request> requests(8);
  requests[1].mutable_describe();
  requests[2].mutable_compile();
  requests[3].mutable_prepare();
  requests[4].mutable_trial();
  requests[5].mutable_release();
  requests[6].mutable_floor();
  requests[7].mutable_play_off();
  for (int i = 0; i < response.play_off().results_size(); ++i) requests[7].mutable_play_off()->add_candidates();
  return requests;
}

void ExpectSound(const v1::Timing& timing) {
  Expect(timing.min_us() >= 0 && timing.min_us() <= timing.median_us() && timing.low_us() >= 0 &&
             timing.low_us() <= timing.median_us() && timing.median_us() <= timing.high_us() &&
             std::isfinite(timing.high_us()) && std::isfinite(timing.power_w()),
         "a time that is believed is one");
}

void ExpectSound(const worker::v1::TrialResponse& trial) {
  Expect(trial.verdict() != v1::VERDICT_UNSPECIFIED && v1::Verdict_IsValid(trial.verdict()), "a verdict is one");
  Expect(trial.verdict() != v1::VERDICT_LOST, "no worker says that it was lost");
  Expect(std::isfinite(trial.check_ms()) && std::isfinite(trial.time_ms()), "durations are numbers");
  if (trial.verdict() == v1::VERDICT_OK) {
    Expect(std::isfinite(trial.accuracy().max_abs_error()), "what is right is so by a number");
  }
  if (trial.has_timing()) ExpectSound(trial.timing());
}

// What the daemon makes of what a compiler reports.
void UseEntries(const worker::v1::CompileResponse& compile) {
  static const auto* const device = new v1::Device(*DeviceProfile("l4"));
  v1::LaunchRecipe recipe;
  recipe.add_launches()->mutable_block()->set_x(128);
  for (const auto& entry : compile.entries()) {
    v1::Resources resources;
    resources.set_registers(entry.registers());
    resources.set_shared_bytes(entry.static_shared_bytes());
    (void)space::GeometryOf(recipe, resources, *device);
  }
}

ATTUNE_FUZZ_TARGET(worker_answer) {
  const auto response = ReadInputOf<Response>(input);
  if (response == nullptr) return;
  int believed = 0;
  for (const Request& request : RequestsFor(*response)) {
    const absl::Status status = supervisor::CheckAnswer(request, *response);
    if (status.ok()) {
      ++believed;
    } else {
      ExpectRefusal(status, absl::StatusCode::kDataLoss, {"an answer that no worker gives: "});
    }
  }
  if (response->error_code() != 0) return;
  Expect(believed <= 1, "an answer is to one kind of request");
  if (believed == 0) return;
  if (response->has_trial()) ExpectSound(response->trial());
  for (const auto& result : response->play_off().results()) ExpectSound(result);
  if (response->has_floor()) ExpectSound(response->floor().timing());
  if (response->has_compile()) UseEntries(response->compile());
}

}  // namespace
}  // namespace attune::fuzz
