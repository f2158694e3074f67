// Every request of the API, over a socket of this process: through authentication, limits and validation to the
// handlers, with the real tuner and catalog over workers, devices and a store that are stand-ins.
#include <unistd.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "attune/v1/access.grpc.pb.h"
#include "attune/v1/blob.grpc.pb.h"
#include "attune/v1/fleet.grpc.pb.h"
#include "attune/v1/service.grpc.pb.h"
#include "server/base/log.h"
#include "server/jobs/testing/tuner_fixture.h"
#include "server/service/access_service.h"
#include "server/service/attune_service.h"
#include "server/service/blobs/blob_service.h"
#include "server/service/fleet/fleet_service.h"
#include "server/service/server.h"
#include "server/submit/submissions.h"
#include "tests/fuzz/message_input.h"
#include "tests/fuzz/target.h"
#include "tests/load/raw_caller.h"

namespace attune::fuzz {
namespace {

using google::protobuf::MethodDescriptor;

constexpr int kMostInputs = 2000;  // then a new daemon: what requests leave behind would slow the next ones down

// What attuned is but for its workers, its device and its files. The tuner is that of the tests of jobs.
class Daemon : public jobs::TunerTest {
 public:
  Daemon() {
    SetLogLevel(LogLevel::kError);
    Start();
    tokens_ = *access::Tokens::Open(absl::StrCat(directory_, "/tokens"));
    service::ServiceOptions options;
    options.tuner = tuner_;
    options.results = results_.get();
    options.misses = &misses_;
    options.host = &host_;
    options.submissions = &submissions_;
    options.store = &store_;
    options.backups = &backups_;
    service_ = std::make_unique<service::AttuneServiceImpl>(std::move(options));
    access_ = std::make_unique<service::AccessServiceImpl>(tokens_.get());
    blobs_ = std::make_unique<service::BlobServiceImpl>(&store_.blobs());
    fleet_ = std::make_unique<service::FleetServiceImpl>(&store_);
    const std::string address = absl::StrCat("unix:", directory_, "/socket");
    auto server = service::Server::Start({address}, {service_.get(), blobs_.get(), access_.get(), fleet_.get()},
                                         {.tokens = tokens_.get()});
    Expect(server.ok(), server.status().ToString());
    server_ = *std::move(server);
    caller_ = std::make_unique<RawCaller>(address);
  }
  ~Daemon() override {
    caller_.reset();
    server_->Shutdown(absl::Seconds(5));
    server_.reset();
    std::filesystem::remove_all(directory_);
  }

  grpc::Status Call(const MethodDescriptor& method, const std::string& request) {
    std::string response;
    return caller_->Call(method, request, &response);
  }

 private:
  void TestBody() override {}
  static std::string NewDirectory() {
    std::string path = "/dev/shm/attune-fuzz-XXXXXX";
    Expect(mkdtemp(path.data()) != nullptr, "there is room in memory");
    return path;
  }

  const std::string directory_ = NewDirectory();
  catalog::Misses misses_{[this](const catalog::ResultKey& key) { return results_->IsTuned(key); }};
  store::Backups backups_{&store_, ""};
  std::unique_ptr<access::Tokens> tokens_;
  submit::Submissions submissions_{store_, host_, ""};
  std::unique_ptr<service::AttuneServiceImpl> service_;
  std::unique_ptr<service::AccessServiceImpl> access_;
  std::unique_ptr<service::BlobServiceImpl> blobs_;
  std::unique_ptr<service::FleetServiceImpl> fleet_;
  std::unique_ptr<service::Server> server_;
  std::unique_ptr<RawCaller> caller_;
};

// Those that take a request of this type.
std::vector<const MethodDescriptor*> MethodsOf(const google::protobuf::Descriptor* request) {
  static const auto* const all = [] {
    auto* methods = new std::multimap<const google::protobuf::Descriptor*, const MethodDescriptor*>;
    for (const auto* service : {v1::TuneRequest::descriptor()->file()->FindServiceByName("AttuneService"),
                                v1::Blob::descriptor()->file()->FindServiceByName("BlobService"),
                                v1::Token::descriptor()->file()->FindServiceByName("AccessService"),
                                v1::Host::descriptor()->file()->FindServiceByName("FleetService")}) {
      for (int i = 0; i < service->method_count(); ++i) {
        methods->emplace(service->method(i)->input_type(), service->method(i));
      }
    }
    return methods;
  }();
  std::vector<const MethodDescriptor*> methods;
  for (auto [one, end] = all->equal_range(request); one != end; ++one) methods.push_back(one->second);
  return methods;
}

ATTUNE_FUZZ_TARGET(requests) {
  static auto* daemon = new Daemon;
  static int inputs = 0;
  const auto request = ReadMessageInput(input);
  if (request == nullptr) return;
  if (++inputs % kMostInputs == 0) {
    delete daemon;
    daemon = new Daemon;
  }
  for (const MethodDescriptor* method : MethodsOf(request->GetDescriptor())) {
    const grpc::Status status = daemon->Call(*method, request->SerializePartialAsString());
    Expect(IsExpected(status) || (method->server_streaming() && status.error_code() == grpc::StatusCode::CANCELLED),
           absl::StrCat(method->name(), " answers as to a caller's mistake; got ", status.error_code(), ": ",
                        status.error_message()));
    Expect(status.ok() || !status.error_message().empty(), absl::StrCat(method->name(), " says what is wrong"));
  }
}

}  // namespace
}  // namespace attune::fuzz
