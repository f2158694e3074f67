// The PEM files of TLS: the same one as certificate, key and authority.
#include "server/access/tls_files.h"

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/fuzz/scratch_file.h"
#include "tests/fuzz/target.h"

namespace attune::fuzz {
namespace {

ATTUNE_FUZZ_TARGET(tls_files) {
  const ScratchFile file(input);
  const auto mistakes = access::MistakesIn({.certificate = file.path(), .key = file.path(), .client_ca = file.path()},
                                           absl::FromUnixSeconds(1'790'000'000));
  for (const std::string& mistake : mistakes) {
    Expect(absl::StartsWith(mistake, "tls_") && absl::StrContains(mistake, file.path()),
           absl::StrCat("a mistake names flag and file; got ", mistake));
  }
}

}  // namespace
}  // namespace attune::fuzz
