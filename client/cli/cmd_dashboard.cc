// attune dashboard: what the server knows, as pages for a browser on this host.
#include <fcntl.h>
#include <spawn.h>
#include <unistd.h>

#include <condition_variable>
#include <cstring>
#include <memory>
#include <mutex>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/cli/arguments.h"
#include "client/cli/command.h"
#include "client/cli/text.h"
#include "client/dashboard/dashboard_server.h"

extern char** environ;

namespace attune::cli {
namespace {

struct DashboardArguments {
  dashboard::DashboardOptions options;
  bool open = false;
};

// The executable of this name in the folders of $PATH; empty when there is none.
std::string FindProgram(absl::string_view name, const std::string& path) {
  for (const absl::string_view folder : absl::StrSplit(path, ':', absl::SkipEmpty())) {
    std::string file = absl::StrCat(folder, "/", name);
    if (access(file.c_str(), X_OK) == 0) return file;
  }
  return "";
}

// Returns without waiting for the browser.
absl::Status OpenBrowser(const Environment& env, const std::string& url) {
  std::string program = FindProgram("xdg-open", env.variable("PATH"));
  if (program.empty()) return absl::NotFoundError("--open: there is no xdg-open in $PATH");
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  for (const int fd : {0, 1, 2}) posix_spawn_file_actions_addopen(&actions, fd, "/dev/null", O_RDWR, 0);
  std::string argument = url;
  char* const arguments[] = {program.data(), argument.data(), nullptr};
  pid_t child = 0;
  const int error = posix_spawn(&child, program.c_str(), &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error == 0) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat("--open: xdg-open cannot be started: ", std::strerror(error)));
}

absl::StatusOr<ExitCode> RunDashboard(Session& session, const DashboardArguments& arguments) {
  // What is asked for by hand is tried again by hand; a page polls.
  const absl::StatusOr<std::unique_ptr<Client>> client = session.NewClient([](ClientOptions& options) {
    options.retry.attempts = 1;
    options.retry.longest_wait = absl::Milliseconds(500);
    options.cache_capacity = 0;
    options.snapshot_path.clear();
    options.unreachable_hold = absl::ZeroDuration();
  });
  if (!client.ok()) return client.status();
  dashboard::DashboardOptions options = arguments.options;
  options.server = session.server();
  options.version = ATTUNE_VERSION;
  const auto server = dashboard::DashboardServer::Start(options, client->get());
  if (!server.ok()) return server.status();

  std::mutex mutex;
  std::condition_variable changed;
  bool ended = false;
  const auto listener = session.env().interrupts->ListenForEnd([&] {
    const std::lock_guard lock(mutex);
    ended = true;
    changed.notify_all();
  });
  const std::string url = (*server)->url();
  if (session.json()) {
    session.Emit({{"type", "dashboard"}, {"url", url}});
  } else {
    session.PrintWhole(absl::StrCat("dashboard: ", url));
  }
  if (arguments.open) {
    if (absl::Status status = OpenBrowser(session.env(), url); !status.ok()) session.Note(status.message());
  }
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return ended; });
  return ExitCode::kOk;
}

}  // namespace

Action AddDashboard(CLI::App& app) {
  auto arguments = std::make_shared<DashboardArguments>();
  dashboard::DashboardOptions& options = arguments->options;
  app.add_option("--listen", options.listen,
                 "ADDRESS:PORT that a browser asks; port 0: any that is free; default 127.0.0.1:7412");
  app.add_flag("--open", arguments->open, "Open it in the browser (xdg-open)");
  AddRepeatable(app, "--host-name", &options.host_names,
                "A name that browsers use for this host, with its port where that is another, as through a tunnel");
  app.add_option("--password-file", options.password_file,
                 "A file with a password that browsers are asked for; others may not read it");
  app.add_option("--https-cert", options.certificate, "A PEM file with the dashboard's certificate: HTTPS");
  app.add_option("--https-key", options.key, "A PEM file with its private key");
  app.add_option("--web-root", options.web_root, "For development: a folder with the pages, read at each request");
  return [arguments](Session& session) { return RunDashboard(session, *arguments); };
}

}  // namespace attune::cli
