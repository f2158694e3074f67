// What every implementation of Store holds the writes to: InvalidArgument names the field, and what it must be.
#ifndef ATTUNE_SERVER_STORE_CHECKS_H_
#define ATTUNE_SERVER_STORE_CHECKS_H_

#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "attune/v1/service.pb.h"
#include "attune/v1/trial.pb.h"
#include "server/store/store.h"

namespace attune::store {

// What a stored trial cannot be without.
absl::Status CheckTrial(const v1::Trial& trial);
// Bytes with OK and none otherwise, and the hash is theirs.
absl::Status CheckArtifact(const CompiledArtifact& artifact, absl::string_view bytes);
// Only what is proven is served, and what the caller says about its problem must be what its trial says.
absl::Status CheckIncumbent(const v1::Incumbent& incumbent, const v1::Trial& trial);
absl::Status CheckBaseline(const v1::Baseline& baseline);
absl::Status CheckRetiming(const v1::Retiming& retiming);

// Why nothing goes back to the incumbent `to`: it is `served` itself, or none of those `before` it, newest first.
// `named` is the incumbent of that name, if there is one; `whose` is WordsOf. NotFound when it is none of these
// incumbents.
absl::Status NoWayBack(absl::string_view to, absl::string_view served, const std::vector<std::string>& before,
                       const std::optional<v1::Incumbent>& named, absl::string_view whose);

// Why a rollback that names no incumbent does nothing: those `before`, newest first, serve what is `served`.
absl::Status NoOtherBefore(absl::string_view served, const std::vector<std::string>& before, absl::string_view whose);

// For messages: "b2.h8.q512.d64.f16 on device class 3f2a9c10 (HOT)".
std::string WordsOf(absl::string_view problem_text, absl::string_view device_class, v1::Policy policy);

// The device class of the card that ran a trial.
const std::string& ClassOf(const v1::Trial& trial);

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_CHECKS_H_
