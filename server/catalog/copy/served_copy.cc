#include "server/catalog/copy/served_copy.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "proto/attune/quote.h"
#include "server/base/clock.h"
#include "server/base/proto_time.h"
#include "server/base/sha256.h"
#include "server/catalog/result_key.h"
#include "server/store/page.h"
#include "server/store/page_token.h"
#include "server/store/rows/names.h"

namespace attune::catalog {
namespace {

constexpr absl::string_view kMagic = "attune served copy ";
constexpr int kFormat = 1;

// Every item of a listing, into `all`; `list` gives the page behind a token.
template <typename Item, typename List, typename Add>
absl::Status ForAll(const List& list, const Add& add) {
  std::string token;
  do {
    absl::StatusOr<store::Page<Item>> page = list(token);
    if (!page.ok()) return page.status();
    for (Item& item : page->items) add(std::move(item));
    token = page->next_page_token;
  } while (!token.empty());
  return absl::OkStatus();
}

using Incumbents = std::map<std::string, v1::Incumbent>;  // by the text of their own classes' keys

// Every incumbent. Of a problem whose incumbent changes between two pages, none of them may have one: such are read
// again.
absl::StatusOr<Incumbents> ListAll(store::Store& store) {
  const absl::Duration begin = SteadyNow();
  Incumbents all;
  absl::Status read = ForAll<v1::Incumbent>(
      [&](const std::string& token) { return store.ListIncumbents({}, store::kMostPageSize, token); },
      [&](v1::Incumbent incumbent) {
        const ResultKey key{incumbent.problem_text(), incumbent.device_class(), incumbent.policy()};
        all.try_emplace(ToText(key), std::move(incumbent));
      });
  if (!read.ok()) return read;
  const auto changes = store.ChangesOfServed(SteadyNow() - begin + store::Store::kLatestCommit);
  if (!changes.ok()) return changes.status();
  std::set<std::string> changed;
  for (const store::ServedChange& change : *changes) {
    changed.insert(change.problem_text);
    all.erase(ToText(ResultKey{change.problem_text, change.device_class, change.policy}));
  }
  absl::StatusOr<std::vector<v1::Incumbent>> now = store.IncumbentsOf({changed.begin(), changed.end()});
  if (!now.ok()) return now.status();
  for (v1::Incumbent& incumbent : *now) {
    const ResultKey key{incumbent.problem_text(), incumbent.device_class(), incumbent.policy()};
    all.insert_or_assign(ToText(key), std::move(incumbent));
  }
  return all;
}

// As Store::ListIncumbents has them.
void AddNewestFirst(Incumbents all, served::v1::Copy& copy) {
  std::map<int64_t, v1::Incumbent*, std::greater<>> by_id;
  for (auto& [key, incumbent] : all) by_id[store::IdOf(store::kIncumbents, incumbent.name()).value_or(0)] = &incumbent;
  for (const auto& [id, incumbent] : by_id) *copy.add_incumbents() = std::move(*incumbent);
}

// What a host has, and not what it does. That it is lost says nothing: after an outage all are until they beat again.
void KeepWhatLasts(v1::Host& host) {
  if (host.state() == v1::Host::STATE_LOST) host.set_state(v1::Host::STATE_LIVE);
  host.clear_heartbeat_time();
  host.clear_heartbeat_age();
  host.clear_operations();
}

absl::Status Damaged(absl::string_view how) {
  return absl::DataLossError(absl::StrCat("the copy of what was served is damaged: ", how));
}

}  // namespace

absl::StatusOr<served::v1::Copy> TakeCopy(store::Store& store, const std::string& database, absl::Time now) {
  served::v1::Copy copy;
  copy.set_database(database);
  SetTimestamp(now, copy.mutable_time());
  absl::StatusOr<std::vector<v1::Host>> hosts = store.hosts().List();
  if (!hosts.ok()) return hosts.status();
  for (v1::Host& host : *hosts) {
    KeepWhatLasts(host);
    *copy.add_hosts() = std::move(host);
  }
  absl::StatusOr<Incumbents> incumbents = ListAll(store);
  if (!incumbents.ok()) return incumbents.status();
  AddNewestFirst(*std::move(incumbents), copy);
  absl::Status read = ForAll<v1::Baseline>(
      [&](const std::string& token) { return store.ListBaselines("", "", store::kMostPageSize, token); },
      [&](v1::Baseline baseline) { *copy.add_baselines() = std::move(baseline); });
  if (!read.ok()) return read;
  std::vector<std::string> adopted;
  read = ForAll<v1::Submission>(
      [&](const std::string& token) {
        return store.ListSubmissions({.state = v1::Submission::STATE_ADOPTED}, store::kMostPageSize, token);
      },
      [&](const v1::Submission& listed) { adopted.push_back(listed.name()); });
  if (!read.ok()) return read;
  for (const std::string& name : adopted) {
    absl::StatusOr<v1::Submission> whole = store.GetSubmission(name);
    if (!whole.ok()) return whole.status();
    *copy.add_adopted() = *std::move(whole);
  }
  return copy;
}

absl::StatusOr<std::string> CopyToFile(const served::v1::Copy& copy) {
  if (const size_t bytes = copy.ByteSizeLong(); bytes > std::numeric_limits<int32_t>::max()) {
    return absl::ResourceExhaustedError(absl::StrCat("a copy of what is served would take ", bytes, " bytes"));
  }
  const std::string contents = copy.SerializeAsString();
  return absl::StrCat(kMagic, kFormat, " ", Sha256(contents), "\n", contents);
}

absl::StatusOr<served::v1::Copy> CopyFromFile(absl::string_view bytes, absl::string_view database) {
  const size_t end = bytes.find('\n');
  absl::string_view line = bytes.substr(0, end);
  if (end == absl::string_view::npos || !absl::ConsumePrefix(&line, kMagic)) return Damaged("it is no such file");
  const std::pair<absl::string_view, absl::string_view> words = absl::StrSplit(line, absl::MaxSplits(' ', 1));
  int format = 0;
  if (!absl::SimpleAtoi(words.first, &format)) return Damaged("it is no such file");
  if (format != kFormat) {
    return absl::FailedPreconditionError(
        absl::StrCat("the copy of what was served is of format ", format, "; this program knows format ", kFormat));
  }
  const absl::string_view contents = bytes.substr(end + 1);
  if (Sha256(contents) != words.second) return Damaged("its contents do not have the hash that it names");
  served::v1::Copy copy;
  if (!copy.ParseFromArray(contents.data(), static_cast<int>(contents.size()))) return Damaged("it cannot be read");
  if (copy.database() != database) {
    return absl::FailedPreconditionError(absl::StrCat("the copy of what was served is of another database, ",
                                                      Quoted(copy.database()), "; --store is ", Quoted(database)));
  }
  return copy;
}

std::string TimeText(const served::v1::Copy& copy) {
  return absl::FormatTime("%Y-%m-%d %H:%M UTC", TimeOf(copy.time()), absl::UTCTimeZone());
}

}  // namespace attune::catalog
