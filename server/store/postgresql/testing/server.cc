#include "server/store/postgresql/testing/server.h"

#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "server/base/deadline.h"
#include "server/store/postgresql/connection.h"

namespace attune::store::postgresql {
namespace {

constexpr absl::Duration kPatience = absl::Minutes(3);

// The newest server that Debian has installed; it keeps them out of PATH.
std::string FindPrograms() {
  std::string newest;
  int version = 0;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/usr/lib/postgresql", error)) {
    const std::string programs = entry.path().string() + "/bin";
    const int found = atoi(entry.path().filename().c_str());
    if (found <= version || access((programs + "/initdb").c_str(), X_OK) != 0) continue;
    version = found;
    newest = programs;
  }
  return newest;
}

const passwd* ServersUser() {
  if (geteuid() != 0) return nullptr;
  const passwd* const postgres = getpwnam("postgres");
  return postgres != nullptr ? postgres : getpwnam("nobody");
}

// In the child. As the server's user, and ended (as by `pg_ctl stop -m immediate`) when this program ends.
[[noreturn]] void Become(const passwd* user, const std::string& log, std::vector<char*>& argv) {
  const int output = open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND, 0666);
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  if (user != nullptr && (setgroups(0, nullptr) != 0 || setgid(user->pw_gid) != 0 || setuid(user->pw_uid) != 0)) {
    _exit(126);
  }
  prctl(PR_SET_PDEATHSIG, SIGQUIT);
  execv(argv[0], argv.data());
  _exit(127);
}

pid_t Spawn(std::vector<std::string> words, const std::string& log) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const passwd* const user = ServersUser();
  const pid_t child = fork();
  if (child == 0) Become(user, log, argv);
  return child;
}

}  // namespace

std::string TestServer::Missing() {
  return FindPrograms().empty() ? "no PostgreSQL server is installed (Debian's package: postgresql-15)" : "";
}

TestServer& TestServer::Get() {
  static TestServer server;
  return server;
}

TestServer::TestServer() : programs_(FindPrograms()) {
  // A socket's path has at most 107 characters, so TMPDIR is not asked.
  directory_ = "/tmp/attune_postgresql_XXXXXX";
  EXPECT_NE(mkdtemp(directory_.data()), nullptr);
  if (const passwd* const user = ServersUser(); user != nullptr) {
    EXPECT_EQ(chown(directory_.c_str(), user->pw_uid, user->pw_gid), 0);
  }
  const pid_t initdb = Spawn({programs_ + "/initdb", "-D", directory_ + "/data", "-U", "attune", "-A", "trust", "-E",
                              "UTF8", "--locale=C", "--no-sync", "--no-instructions"},
                             directory_ + "/initdb.log");
  int status = 0;
  EXPECT_EQ(waitpid(initdb, &status, 0), initdb);
  EXPECT_EQ(status, 0) << "initdb failed; see " << directory_ << "/initdb.log";
  Start();
}

TestServer::~TestServer() {
  if (server_ > 0) {
    kill(server_, SIGQUIT);
    int status = 0;
    waitpid(server_, &status, 0);
  }
  std::error_code ignored;
  if (!directory_.empty()) std::filesystem::remove_all(directory_, ignored);
}

// fsync guards against the machine's death, which no test brings about; a killed process loses nothing that it has
// written.
void TestServer::Start() {
  const Deadline deadline = After(kPatience);
  do {
    server_ = Spawn({programs_ + "/postgres", "-D", directory_ + "/data", "-k", directory_, "-c",
                     "listen_addresses=", "-c", "fsync=off", "-c", "shared_buffers=32MB", "-c", "autovacuum=off"},
                    directory_ + "/server.log");
    // One that was killed may have left processes, which refuse the next until they have ended.
    if (AwaitAnswer()) return;
  } while (std::chrono::steady_clock::now() < deadline);
  ADD_FAILURE() << "PostgreSQL does not answer; see " << directory_ << "/server.log";
}

bool TestServer::AwaitAnswer() const {
  const Deadline deadline = After(kPatience);
  while (std::chrono::steady_clock::now() < deadline) {
    if (Connection::Open({.target = Base()}).ok()) return true;
    int status = 0;
    if (waitpid(server_, &status, WNOHANG) == server_) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  return false;
}

void TestServer::Kill() {
  kill(server_, SIGKILL);
  int status = 0;
  waitpid(server_, &status, 0);
  server_ = -1;
}

std::string TestServer::Base() const { return absl::StrCat("host=", directory_, " user=attune dbname=postgres"); }

std::string TestServer::InSchema(const std::string& search_path) const {
  return absl::StrCat(Base(), " options=-csearch_path=", search_path);
}

void TestServer::Script(const std::string& target, const std::string& sql) const {
  absl::StatusOr<std::unique_ptr<Connection>> connection = Connection::Open({.target = target});
  ASSERT_TRUE(connection.ok()) << connection.status();
  const absl::Status status = (*connection)->ExecuteScript(sql);
  ASSERT_TRUE(status.ok()) << status;
}

std::string TestServer::Target(const std::string& schema) {
  Script(Base(), absl::StrCat("SET client_min_messages = warning; CREATE SCHEMA IF NOT EXISTS ", schema));
  return InSchema(schema);
}

// The schema stands before PostgreSQL's own, so that its function is taken.
std::string TestServer::TargetWithClock(const std::string& schema) {
  Target(schema);
  const std::string target = InSchema(schema + ",pg_catalog");
  Script(target,
         "SET client_min_messages = warning;"
         "CREATE TABLE IF NOT EXISTS test_clock (at timestamptz);"
         "CREATE OR REPLACE FUNCTION statement_timestamp() RETURNS timestamptz STABLE LANGUAGE sql"
         " AS 'SELECT at FROM test_clock'");
  return target;
}

std::string TestServer::SetClockSql(int64_t unix_microseconds) {
  return absl::StrCat("BEGIN; DELETE FROM test_clock; INSERT INTO test_clock SELECT timestamptz 'epoch' + ",
                      unix_microseconds, " * interval '1 microsecond'; COMMIT");
}

}  // namespace attune::store::postgresql
