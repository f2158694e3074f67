// The table of the methods of AttuneService, BlobService, AccessService and FleetService: the least role that may call
// each, and whether it changes anything. A method that is not in it cannot be served: naming it does not compile.
#ifndef ATTUNE_SERVER_ACCESS_METHOD_H_
#define ATTUNE_SERVER_ACCESS_METHOD_H_

#include <cstddef>
#include <iterator>

#include "absl/strings/string_view.h"
#include "server/access/role.h"

namespace attune::access {

struct Method {
  absl::string_view name;
  Role needs = Role::kAdmin;
  bool changes = false;  // what is stored, served or run; compiling the code of an answer is none
};

inline constexpr Method kMethods[] = {
    {"GetBest", Role::kReader},
    {"Tune", Role::kTuner, true},
    {"Sweep", Role::kTuner, true},
    {"PlanSweep", Role::kReader},
    {"EvaluateVariant", Role::kTuner, true},
    {"Submit", Role::kAuthor, true},
    {"GetSubmission", Role::kReader},
    {"ListSubmissions", Role::kReader},
    {"AdoptSubmission", Role::kAdmin, true},
    {"WithdrawSubmission", Role::kAuthor, true},
    {"Profile", Role::kTuner, true},
    {"Sanitize", Role::kTuner, true},
    {"GetOperation", Role::kReader},
    {"WatchOperation", Role::kReader},
    {"ListOperations", Role::kReader},
    {"CancelOperation", Role::kTuner, true},
    {"GetTrial", Role::kReader},
    {"ListTrials", Role::kReader},
    {"ListIncumbents", Role::kReader},
    {"RetryTrials", Role::kTuner, true},
    {"Explain", Role::kReader},
    {"RollBack", Role::kTuner, true},
    {"Unpin", Role::kTuner, true},
    {"RecordBaseline", Role::kTuner, true},
    {"ListBaselines", Role::kReader},
    {"ListRetimings", Role::kReader},
    {"ListTrends", Role::kReader},
    {"CompareTimes", Role::kReader},
    {"ListMisses", Role::kReader},
    {"ListKernelFamilies", Role::kReader},
    {"ListDevices", Role::kReader},
    {"Preflight", Role::kReader},
    {"CreateBackup", Role::kAdmin, true},
    {"ListBackups", Role::kAdmin},
    {"Ping", Role::kReader},
    // Of BlobService: what is put, others load as code.
    {"GetBlobs", Role::kReader},
    {"PutBlob", Role::kAuthor, true},
    {"ListBlobs", Role::kReader},
    {"DeleteBlobs", Role::kAuthor, true},
    // Of AccessService.
    {"GetCaller", Role::kReader},
    {"CreateToken", Role::kAdmin, true},
    {"ListTokens", Role::kAdmin},
    {"RevokeToken", Role::kAdmin, true},
    // Of FleetService.
    {"ListHosts", Role::kReader},
    {"DrainHost", Role::kAdmin, true},
    {"UndrainHost", Role::kAdmin, true},
    {"ForgetHost", Role::kAdmin, true},
};

// Where in kMethods it is; how many there are where there is none of that name.
constexpr size_t IndexOfMethod(absl::string_view name) {
  size_t index = 0;
  while (index < std::size(kMethods) && kMethods[index].name != name) ++index;
  return index;
}

// Null where there is none of that name.
inline const Method* FindMethod(absl::string_view name) {
  const size_t index = IndexOfMethod(name);
  return index < std::size(kMethods) ? &kMethods[index] : nullptr;
}

// The row of a method, found by the compiler.
class MethodRow {
 public:
  // Implicit, so that a call names its method as a text.
  consteval MethodRow(const char* name) : row_(Find(name)) {}  // NOLINT(google-explicit-constructor)

  const Method& operator*() const { return *row_; }
  const Method* operator->() const { return row_; }

 private:
  static constexpr const Method* Find(absl::string_view name) {
    const size_t index = IndexOfMethod(name);
    if (index == std::size(kMethods)) throw "not in kMethods";  // no constant: the compiler stops here
    return &kMethods[index];
  }

  const Method* row_;
};

}  // namespace attune::access

#endif  // ATTUNE_SERVER_ACCESS_METHOD_H_
