#include "client/cpp/launch/answers.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attune::launch {
namespace {

// The name of the device that is this process's GPU.
absl::StatusOr<std::string> SameDevice(const v1::ListDevicesResponse& known, const v1::Device& gpu) {
  const v1::Device* same_model = nullptr;
  std::vector<std::string> names;
  for (const v1::Device& device : known.devices()) {
    if (device.backend() != v1::BACKEND_CUDA) continue;
    if (!device.uuid().empty() && device.uuid() == gpu.uuid()) return device.id();
    if (same_model == nullptr && device.model() == gpu.model()) same_model = &device;
    names.push_back(absl::StrCat(device.id(), " (", device.model(), ")"));
  }
  if (same_model != nullptr) return same_model->id();
  return absl::NotFoundError(absl::StrCat("this process's GPU is a ", gpu.model(), "; known are ",
                                          names.empty() ? "no CUDA devices" : absl::StrJoin(names, ", ")));
}

class ServerAndSnapshot : public Answers {
 public:
  ServerAndSnapshot(AnswersOptions options, v1::Device gpu, std::unique_ptr<Client> client,
                    std::shared_ptr<const Snapshot> snapshot)
      : options_(std::move(options)),
        gpu_(std::move(gpu)),
        client_(std::move(client)),
        snapshot_(std::move(snapshot)) {}

  absl::StatusOr<AnswerPtr> Ask(const Problem& problem, bool without_code) override {
    if (client_ == nullptr) return absl::UnavailableError("no server was given");
    if (device_.empty()) {
      absl::StatusOr<std::string> device = FindDevice();
      if (!device.ok()) return device.status();
      device_ = *std::move(device);
    }
    return client_->GetBest({.problem = problem,
                             .device_id = device_,
                             .policy = options_.policy,
                             .acceptable = options_.acceptable,
                             .include_artifact = !without_code,
                             .include_domains = true});
  }

  absl::StatusOr<AnswerPtr> Kept(const Problem& problem) override {
    if (snapshot_ == nullptr) return absl::NotFoundError("no snapshot was given");
    std::string device = options_.device;
    if (device.empty()) {
      absl::StatusOr<std::string> same = SameDevice(snapshot_->devices(), gpu_);
      if (!same.ok()) return same.status();
      device = *std::move(same);
    }
    if (AnswerPtr answer = snapshot_->Find({problem, device, options_.policy}); answer != nullptr && Accepts(*answer)) {
      return answer;
    }
    return absl::NotFoundError(
        absl::StrCat("the snapshot '", options_.snapshot, "' has no answer for ", ToText(problem), " on ", device));
  }

 private:
  bool Accepts(const v1::GetBestResponse& answer) const {
    return std::find(options_.acceptable.begin(), options_.acceptable.end(), answer.provenance()) !=
           options_.acceptable.end();
  }

  absl::StatusOr<std::string> FindDevice() {
    if (!options_.device.empty()) return options_.device;
    const absl::StatusOr<v1::ListDevicesResponse> known = client_->ListDevices();
    if (!known.ok()) return known.status();
    return SameDevice(*known, gpu_);
  }

  const AnswersOptions options_;
  const v1::Device gpu_;
  const std::unique_ptr<Client> client_;            // may be null
  const std::shared_ptr<const Snapshot> snapshot_;  // may be null
  std::string device_;                              // the server's name; empty until it was found
};

}  // namespace

absl::StatusOr<std::unique_ptr<Answers>> OpenAnswers(AnswersOptions options, const v1::Device& gpu) {
  std::unique_ptr<Client> client;
  if (!options.server.empty()) {
    ClientOptions client_options;
    client_options.deadline = options.deadline;
    client_options.cache_capacity = 0;  // what is asked again is asked to learn what has changed
    absl::StatusOr<std::unique_ptr<Client>> connected = Client::Connect(options.server, client_options);
    if (!connected.ok()) return connected.status();
    client = *std::move(connected);
  }
  std::shared_ptr<const Snapshot> snapshot;
  if (!options.snapshot.empty()) {
    absl::StatusOr<std::shared_ptr<const Snapshot>> loaded = Snapshot::Load(options.snapshot);
    if (!loaded.ok()) return loaded.status();
    snapshot = *std::move(loaded);
  }
  return std::make_unique<ServerAndSnapshot>(std::move(options), gpu, std::move(client), std::move(snapshot));
}

}  // namespace attune::launch
