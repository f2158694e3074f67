// Stands in for attune-worker in the supervisor's tests: speaks its protocol and misbehaves as the request says.
//
// The text of a compile's target, a trial's artifact or a reference's artifact is what to do:
//   "ok"  answer   "hang"  never answer   "segv"  crash   "exit3"  exit with 3   "terminate"  be killed by SIGTERM
//   "error"  answer with NotFound   "aborted"  answer with Aborted   "lost"  answer as when the device is gone
//   "oversized"  announce 4 GiB   "garbage"  answer with bytes that are no message   "partial"  exit in the middle of
//   an answer   "big"  answer with 64 MiB   "child"  start a process that never ends and answer with its id
//   "wait <fifo>"  answer once the fifo is closed   "stop"  be stopped by SIGSTOP   "other"  answer another request
//   "lie"  answer with a verdict or a time that no worker gives
//   "once <file> <what>"  do <what>, but answer if the file exists; it is made first
// Answers of a device worker say "pid <pid> seed <seed> prepares <count>".
#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "server/worker/device_lock.h"
#include "server/worker/sandbox.h"
#include "server/worker/session.h"

ABSL_FLAG(std::string, role, "", "");
ABSL_FLAG(std::string, device, "", "");
ABSL_FLAG(int, fd, 3, "");
ABSL_FLAG(std::string, emulate, "", "\"die\": exit with 7 before the first answer; or what to do before it");
ABSL_FLAG(std::string, lock_dir, "", "");
ABSL_FLAG(std::string, verify, "", "");

namespace attune::worker {
namespace {

class FakeSession : public Session {
 public:
  worker::v1::Response Handle(const worker::v1::Request& request) override {
    lies_ = answers_another_ = false;
    worker::v1::Response response = Answer(request);
    if (lies_) Lie(response);
    if (answers_another_) response.mutable_release();
    return response;
  }

 private:
  worker::v1::Response Answer(const worker::v1::Request& request) {
    worker::v1::Response response;
    switch (request.kind_case()) {
      case worker::v1::Request::kDescribe:
        if (absl::GetFlag(FLAGS_emulate) == "die") _exit(7);
        Do(absl::GetFlag(FLAGS_emulate));
        response.mutable_describe()->add_devices()->set_id("fake:0");
        response.mutable_describe()->add_backends()->set_compiler("fake 1.0");
        return response;
      case worker::v1::Request::kCompile: {
        response = Do(request.compile().target());
        response.mutable_compile()->set_verdict(attune::v1::VERDICT_OK);
        if (response.compile().artifact().empty()) response.mutable_compile()->set_artifact(detail_);
        return response;
      }
      case worker::v1::Request::kPrepare:
        response = Do(request.prepare().exact().artifact());
        if (response.error_code() != 0) return response;
        seed_ = request.prepare().seed();
        ++prepares_;
        response.mutable_prepare()->set_prepare_ms(1);
        return response;
      case worker::v1::Request::kTrial:
        response = Do(request.trial().candidate().artifact());
        response.mutable_trial()->set_verdict(attune::v1::VERDICT_OK);
        response.mutable_trial()->set_detail(State());
        return response;
      case worker::v1::Request::kPlayOff:
        response = Do(request.play_off().candidates(0).artifact());
        for (int i = 0; i < request.play_off().candidates_size(); ++i) {
          response.mutable_play_off()->add_results()->set_verdict(attune::v1::VERDICT_OK);
          response.mutable_play_off()->mutable_results(i)->set_detail(State());
        }
        return response;
      case worker::v1::Request::kFloor:
        response = Do(request.floor().artifact());
        response.mutable_floor()->mutable_timing()->set_low_us(2);
        response.mutable_floor()->mutable_timing()->set_median_us(2);
        response.mutable_floor()->mutable_timing()->set_high_us(2);
        return response;
      default:
        response.mutable_release();
        return response;
    }
  }

  static void Lie(worker::v1::Response& response) {
    const double no_time = std::numeric_limits<double>::quiet_NaN();
    if (response.has_compile()) response.mutable_compile()->set_verdict(attune::v1::VERDICT_LOST);
    if (response.has_prepare()) response.mutable_prepare()->set_prepare_ms(no_time);
    if (response.has_trial()) response.mutable_trial()->set_verdict(attune::v1::VERDICT_LOST);
    if (response.has_play_off()) response.mutable_play_off()->mutable_results(0)->set_verdict(attune::v1::VERDICT_LOST);
    if (response.has_floor()) response.mutable_floor()->mutable_timing()->set_median_us(no_time);
  }

  std::string State() const {
    return absl::StrCat("pid ", getpid(), " seed ", seed_, " prepares ", prepares_, " verify ",
                        absl::GetFlag(FLAGS_verify));
  }

  void SendRaw(const std::string& bytes) { send(absl::GetFlag(FLAGS_fd), bytes.data(), bytes.size(), MSG_NOSIGNAL); }

  [[noreturn]] void Die(int signal) {
    ::signal(signal, SIG_DFL);
    raise(signal);
    _exit(99);
  }

  worker::v1::Response Do(const std::string& what) {
    worker::v1::Response response;
    detail_ = "ok";
    if (absl::StartsWith(what, "once ")) {
      const std::vector<std::string> words = absl::StrSplit(what, ' ');
      const int file = open(words[1].c_str(), O_CREAT | O_EXCL | O_CLOEXEC, 0600);
      return file < 0 ? response : Do(words[2]);
    }
    if (what == "hang") pause();
    if (what == "segv") Die(SIGSEGV);
    if (what == "terminate") Die(SIGTERM);
    if (what == "stop") raise(SIGSTOP);
    if (what == "exit3") _exit(3);
    if (what == "error") return ErrorResponse(absl::NotFoundError("a fake error"));
    if (what == "aborted") return ErrorResponse(absl::AbortedError("illegal address"));
    if (what == "lost") return ErrorResponse(absl::InternalError("cuCtxSynchronize: CUDA_ERROR_ECC_UNCORRECTABLE"));
    if (what == "oversized") SendRaw("\xff\xff\xff\xff");
    if (what == "garbage") SendRaw(std::string("\x04\0\0\0\xff\xff\xff\xff", 8));
    lies_ = what == "lie";
    answers_another_ = what == "other";
    if (what == "partial") {
      SendRaw(std::string("\x64\0\0\0", 4) + "only this");
      _exit(3);
    }
    if (what == "big") response.mutable_compile()->set_artifact(std::string(64 << 20, 'x'));
    if (what == "child") {
      const pid_t child = fork();
      if (child == 0) {
        while (true) pause();
      }
      detail_ = absl::StrCat(child);
    }
    if (absl::StartsWith(what, "wait ")) WaitAt(what.c_str() + 5);
    if (absl::StartsWith(what, "escape ")) {
      if (fork() == 0) {
        setsid();
        WaitAt(what.c_str() + 7);
        _exit(0);
      }
    }
    return response;
  }

  static void WaitAt(const char* path) {
    const int fifo = open(path, O_RDONLY | O_CLOEXEC);
    char byte;
    while (read(fifo, &byte, 1) > 0) {
    }
    close(fifo);
  }

  uint64_t seed_ = 0;
  int prepares_ = 0;
  bool lies_ = false;             // in the answer to this request
  bool answers_another_ = false;  // than this request
  std::string detail_;
};

int Main() {
  ExitWithPeer(absl::GetFlag(FLAGS_fd));
  FakeSession session;
  if (absl::GetFlag(FLAGS_role) != "device") return Serve(absl::GetFlag(FLAGS_fd), session).ok() ? 0 : 1;
  attune::v1::Device device;
  device.set_id(absl::GetFlag(FLAGS_device));
  const absl::StatusOr<DeviceLock> lock = DeviceLock::Take(absl::GetFlag(FLAGS_lock_dir), device);
  FailedSession failed(lock.status());
  return Serve(absl::GetFlag(FLAGS_fd), lock.ok() ? static_cast<Session&>(session) : failed).ok() ? 0 : 1;
}

}  // namespace
}  // namespace attune::worker

int main(int argc, char** argv) {
  if (!attune::worker::HardenProcess().ok()) return EXIT_FAILURE;
  absl::ParseCommandLine(argc, argv);
  return attune::worker::Main();
}
