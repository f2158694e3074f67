// Calls of any method with any bytes.
#ifndef ATTUNE_TESTS_LOAD_RAW_CALLER_H_
#define ATTUNE_TESTS_LOAD_RAW_CALLER_H_

#include <chrono>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace attune {

// Bytes in, a status and bytes out.
class RawCaller {
 public:
  explicit RawCaller(const std::string& server)
      : channel_(grpc::CreateChannel(server, grpc::InsecureChannelCredentials())), stub_(channel_) {}

  // Of a stream the first answer counts, which comes at once, and the call is dropped.
  grpc::Status Call(const google::protobuf::MethodDescriptor& method, const std::string& request,
                    std::string* response) {
    grpc::ClientContext context;
    const bool stream = method.server_streaming();
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(30));
    const auto call =
        stub_.PrepareCall(&context, absl::StrCat("/", method.service()->full_name(), "/", method.name()), &queue_);
    const grpc::Slice slice(request);
    grpc::ByteBuffer answer;
    grpc::Status status;
    call->StartCall(nullptr);
    bool alive = Wait();
    if (alive) {
      call->WriteLast(grpc::ByteBuffer(&slice, 1), grpc::WriteOptions(), nullptr);
      alive = Wait();
    }
    if (alive) {
      call->Read(&answer, nullptr);
      if (Wait() && stream) context.TryCancel();
    }
    call->Finish(&status, nullptr);
    Wait();
    grpc::Slice bytes;
    if (answer.Valid() && answer.DumpToSingleSlice(&bytes).ok()) {
      response->assign(reinterpret_cast<const char*>(bytes.begin()), bytes.size());
      if (stream) return grpc::Status::OK;
    }
    return status;
  }

 private:
  bool Wait() {
    void* tag = nullptr;
    bool ok = false;
    return queue_.Next(&tag, &ok) && ok;
  }

  grpc::CompletionQueue queue_;
  std::shared_ptr<grpc::Channel> channel_;
  grpc::GenericStub stub_;
};

// What a caller may be told who sends nonsense. DEADLINE_EXCEEDED is none of it: somebody was kept waiting.
inline bool IsExpected(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::INVALID_ARGUMENT:
    case grpc::StatusCode::NOT_FOUND:
    case grpc::StatusCode::ALREADY_EXISTS:
    case grpc::StatusCode::FAILED_PRECONDITION:
    case grpc::StatusCode::RESOURCE_EXHAUSTED:
      return true;
    default:
      return false;
  }
}

}  // namespace attune

#endif  // ATTUNE_TESTS_LOAD_RAW_CALLER_H_
