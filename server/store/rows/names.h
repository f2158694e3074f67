// What every database's rows share: resource names, and times as numbers.
#ifndef ATTUNE_SERVER_STORE_ROWS_NAMES_H_
#define ATTUNE_SERVER_STORE_ROWS_NAMES_H_

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "google/protobuf/timestamp.pb.h"
#include "server/store/store.h"

namespace attune::store {

inline constexpr absl::string_view kTrials = "trials/";
inline constexpr absl::string_view kIncumbents = "incumbents/";
inline constexpr absl::string_view kRetimings = "retimings/";
inline constexpr absl::string_view kSubmissions = "submissions/";

// 123 for "trials/123"; nothing for what no Store has ever named.
std::optional<int64_t> IdOf(absl::string_view collection, absl::string_view name);

int64_t ToNanoseconds(const google::protobuf::Timestamp& time);
google::protobuf::Timestamp FromNanoseconds(int64_t nanoseconds);
google::protobuf::Timestamp Now();

// When a job ended; nothing for one that has not.
std::optional<int64_t> EndOf(const v1::Operation& operation);

// "(2, 3, ...)", for SQL: the verdicts that hold for a class (HoldsForClass). Numbers of an enum: nothing to quote.
std::string VerdictsOfTheClass();
// The same of those that are no bad verdicts on the code: what they say is found out again when it is forgotten.
std::string VerdictsThatMayGo();
// The same of those in a filter, each once.
std::string VerdictsOf(const v1::TrialFilter& filter);

// Tells the listing of a filter from others.
std::string NameOf(const v1::TrialFilter& filter, v1::ListTrialsRequest::Order order);
std::string NameOf(const IncumbentFilter& filter);
std::string NameOf(const RetimingFilter& filter);
std::string NameOfBaselines(absl::string_view problem_text, absl::string_view device_id);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_ROWS_NAMES_H_
