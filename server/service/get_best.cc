// GetBest: answers of a look-up from memory, and the waiting for their code.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "server/base/clock.h"
#include "server/base/proto_time.h"
#include "server/service/attune_service.h"
#include "server/service/calls.h"
#include "server/service/errors.h"
#include "server/service/limits.h"

namespace attune::service {

absl::Status AttuneServiceImpl::Answer(const v1::GetBestRequest& request, std::string_view bytes,
                                       grpc::ByteBuffer* response, std::string* awaited, bool again) {
  if (absl::Status status = CheckLimits(request); !status.ok()) return status;
  v1::GetBestRequest valid = request;
  // What has fields that this server does not know, or an odd encoding, can be written in any number of ways.
  valid.DiscardUnknownFields();
  const bool plain = valid.ByteSizeLong() == bytes.size();
  if (absl::Status status = Validate(valid, *options_.host); !status.ok()) return status;
  const uint64_t version = options_.results->version();
  const absl::StatusOr<v1::GetBestResponse> answer = options_.results->GetBest(valid, awaited);
  catalog::MissPtr miss = MissOf(valid, answer, again);
  metrics::AnswerKind kind;
  if (options_.answers != nullptr && (answer.ok() || absl::IsNotFound(answer.status()))) {
    kind = options_.answers->Of(valid.problem(), answer.ok() ? std::optional(answer->provenance()) : std::nullopt);
    if (!again) kind.Count();
  }
  if (!answer.ok()) return answer.status();
  const grpc::Slice slice(answer->SerializeAsString());
  *response = grpc::ByteBuffer(&slice, 1);
  // Who waits for code is not answered at once from what was known when somebody else had waited long enough.
  const bool final = awaited->empty() || !valid.has_wait();
  if (plain && final) answers_.Put(bytes, version, *response, std::move(miss), kind);
  return absl::OkStatus();
}

catalog::MissPtr AttuneServiceImpl::MissOf(const v1::GetBestRequest& request,
                                           const absl::StatusOr<v1::GetBestResponse>& answer, bool again) {
  if (options_.misses == nullptr || !(answer.ok() || absl::IsNotFound(answer.status()))) return nullptr;
  const v1::Device* const device = catalog::FindDevice(*options_.host, request.device_id());
  if (device == nullptr) return nullptr;
  const absl::Time now = absl::Now();
  catalog::MissPtr miss = options_.misses->Note(KeyOf(request, *options_.host), *device, answer, now);
  if (miss != nullptr && !again) miss->Count(now);
  return miss;
}

struct AttuneServiceImpl::Question {
  v1::GetBestRequest request;
  std::string bytes;     // as it came; empty: the answer is not to be kept
  absl::Duration until;  // it waits, of SteadyNow
  std::string awaited;   // the compile key that it has waited for
  grpc::CallbackServerContext* context;
  grpc::ServerUnaryReactor* reactor;
  grpc::ByteBuffer* response;
};

void AttuneServiceImpl::Give(std::shared_ptr<Question> question) {
  std::string awaited;
  const absl::Status status = Work(question->context, question->request, [&] {
    return Answer(question->request, question->bytes, question->response, &awaited,
                  /*again=*/!question->awaited.empty());
  });
  const absl::Duration patience = question->until - SteadyNow();
  // One key is awaited once: if it is still COMPILING, there was no room to wait or no time left.
  if (!status.ok() || awaited.empty() || awaited == question->awaited || options_.supply == nullptr ||
      patience <= absl::ZeroDuration()) {
    return question->reactor->Finish(End(*question->context, "GetBest", status));
  }
  question->awaited = awaited;
  options_.supply->Await(awaited, patience,
                         [this, question = std::move(question)]() mutable { Run(std::move(question)); });
}

void AttuneServiceImpl::Run(std::shared_ptr<Question> question) {
  Executor& executor = question->request.include_domains() ? ranging_ : executor_;
  executor.Run([this, question = std::move(question)] { Give(question); });
}

grpc::ServerUnaryReactor* AttuneServiceImpl::GetBest(grpc::CallbackServerContext* context,
                                                     const grpc::ByteBuffer* request, grpc::ByteBuffer* response) {
  if (absl::Status admitted = Admit(*context, "GetBest", nullptr, request->Length()); !admitted.ok()) {
    return Finish(context, "GetBest", admitted);
  }
  grpc::Slice slice;
  if (!request->DumpToSingleSlice(&slice).ok()) slice = grpc::Slice();
  const std::string_view bytes(reinterpret_cast<const char*>(slice.begin()), slice.size());
  if (std::optional<grpc::ByteBuffer> kept = answers_.Find(bytes, options_.results->version())) {
    response->Swap(&*kept);
    return Finish(context, "GetBest", absl::OkStatus());
  }
  v1::GetBestRequest parsed;
  if (!parsed.ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    const absl::Status why = absl::InvalidArgumentError("the request is not an attune.v1.GetBestRequest");
    AuditUnread(context, "GetBest", why);
    return Finish(context, "GetBest", why);
  }
  if (parsed.include_artifact() || parsed.has_wait() || parsed.include_domains()) {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    auto question = std::make_shared<Question>();
    if (!parsed.include_artifact()) question->bytes = std::string(bytes);
    question->until = SteadyNow() + DurationOf(parsed.wait());
    question->request = std::move(parsed);
    question->context = context;
    question->reactor = reactor;
    question->response = response;
    Run(std::move(question));
    return reactor;
  }
  std::string nobody_waits;
  return Finish(context, "GetBest", Answer(parsed, bytes, response, &nobody_waits));
}

}  // namespace attune::service
