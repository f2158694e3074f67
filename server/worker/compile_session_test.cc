#include "server/worker/compile_session.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace attune::worker {
namespace {

using ::testing::HasSubstr;

class FakeCompiler : public device::Compiler {
 public:
  std::string toolchain() const override { return "fake 1.0"; }
  absl::StatusOr<worker::v1::CompileResponse> Compile(const worker::v1::CompileRequest& request) override {
    worker::v1::CompileResponse response;
    response.set_verdict(attune::v1::VERDICT_OK);
    response.set_artifact(absl::StrCat(request.sources(0).text(), " #", ++compiled_));
    return response;
  }

 private:
  int compiled_ = 0;
};

class FakeBackend : public device::Backend {
 public:
  FakeBackend(attune::v1::Backend kind, bool has_compiler, bool has_device)
      : kind_(kind), has_compiler_(has_compiler), has_device_(has_device) {}

  attune::v1::BackendStatus Status() override {
    attune::v1::BackendStatus status;
    status.set_backend(kind_);
    status.set_available(has_device_);
    if (!has_device_) status.set_reason("no device");
    return status;
  }
  std::vector<attune::v1::Device> Devices() override {
    attune::v1::Device device;
    device.set_id("fake:0");
    return has_device_ ? std::vector<attune::v1::Device>{device} : std::vector<attune::v1::Device>();
  }
  absl::StatusOr<std::unique_ptr<device::Device>> Open(const std::string&) override {
    return absl::NotFoundError("none");
  }
  absl::StatusOr<std::unique_ptr<device::Compiler>> OpenCompiler() override {
    if (!has_compiler_) return absl::UnavailableError("no compiler library");
    return std::make_unique<FakeCompiler>();
  }

 private:
  attune::v1::Backend kind_;
  bool has_compiler_, has_device_;
};

std::vector<std::unique_ptr<device::Backend>> Backends() {
  std::vector<std::unique_ptr<device::Backend>> backends;
  backends.push_back(std::make_unique<FakeBackend>(attune::v1::BACKEND_CUDA, true, false));
  backends.push_back(std::make_unique<FakeBackend>(attune::v1::BACKEND_OPENCL, false, true));
  return backends;
}

worker::v1::Request CompileOf(attune::v1::Backend backend) {
  worker::v1::Request request;
  request.mutable_compile()->set_backend(backend);
  request.mutable_compile()->add_sources()->set_text("source");
  return request;
}

TEST(CompileSession, OpensACompilerOnceAndKeepsIt) {
  CompileSession session(Backends());
  EXPECT_EQ(session.Handle(CompileOf(attune::v1::BACKEND_CUDA)).compile().artifact(), "source #1");
  EXPECT_EQ(session.Handle(CompileOf(attune::v1::BACKEND_CUDA)).compile().artifact(), "source #2");
}

TEST(CompileSession, SaysWhyThereIsNoCompiler) {
  CompileSession session(Backends());
  EXPECT_EQ(session.Handle(CompileOf(attune::v1::BACKEND_OPENCL)).error_message(), "no compiler library");
  EXPECT_THAT(session.Handle(CompileOf(attune::v1::BACKEND_UNSPECIFIED)).error_message(),
              HasSubstr("not of this build"));
}

TEST(CompileSession, NeedsSources) {
  CompileSession session(Backends());
  worker::v1::Request request = CompileOf(attune::v1::BACKEND_CUDA);
  request.mutable_compile()->clear_sources();
  EXPECT_EQ(session.Handle(request).error_code(), static_cast<int>(absl::StatusCode::kInvalidArgument));
}

TEST(CompileSession, ServesNoOtherRole) {
  CompileSession session(Backends());
  worker::v1::Request request;
  request.mutable_trial();
  EXPECT_EQ(session.Handle(request).error_code(), static_cast<int>(absl::StatusCode::kUnimplemented));
}

TEST(ProbeSession, TellsCompilersWithoutDevicesAndDevicesWithoutCompilers) {
  ProbeSession session(Backends());
  worker::v1::Request request;
  request.mutable_describe();
  const worker::v1::DescribeResponse described = session.Handle(request).describe();
  ASSERT_EQ(described.backends_size(), 2);
  EXPECT_EQ(described.backends(0).compiler(), "fake 1.0");
  EXPECT_EQ(described.backends(0).reason(), "no device");
  EXPECT_EQ(described.backends(1).compiler(), "");
  EXPECT_EQ(described.backends(1).reason(), "no compiler library");
  ASSERT_EQ(described.devices_size(), 1);
  EXPECT_EQ(described.devices(0).id(), "fake:0");
}

}  // namespace
}  // namespace attune::worker
