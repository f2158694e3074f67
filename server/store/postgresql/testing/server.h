// A PostgreSQL server of the test program's own: in a directory under /tmp, reached by its Unix socket alone, and gone
// with the program. PostgreSQL refuses to run as root; for root it runs as postgres, or as nobody.
#ifndef ATTUNE_SERVER_STORE_POSTGRESQL_TESTING_SERVER_H_
#define ATTUNE_SERVER_STORE_POSTGRESQL_TESTING_SERVER_H_

#include <sys/types.h>

#include <cstdint>
#include <string>

namespace attune::store::postgresql {

class TestServer {
 public:
  // Why there cannot be one here; empty: there can.
  static std::string Missing();
  // The program's server, which the first call starts.
  static TestServer& Get();

  // Connection string of a schema of the server's database; made, without tables, when it is not there.
  std::string Target(const std::string& schema);
  // The same, and leases there go by a clock that SetClock sets.
  std::string TargetWithClock(const std::string& schema);
  static std::string SetClockSql(int64_t unix_microseconds);

  // kill -9 of the server's first process; the others end by themselves. Nobody is answered until Start.
  void Kill();
  void Start();

  ~TestServer();
  TestServer(const TestServer&) = delete;
  TestServer& operator=(const TestServer&) = delete;

 private:
  TestServer();
  std::string Base() const;
  std::string InSchema(const std::string& search_path) const;
  void Script(const std::string& target, const std::string& sql) const;
  bool AwaitAnswer() const;

  std::string programs_;  // where postgres and initdb are
  std::string directory_;
  pid_t server_ = -1;
};

}  // namespace attune::store::postgresql

#endif  // ATTUNE_SERVER_STORE_POSTGRESQL_TESTING_SERVER_H_
