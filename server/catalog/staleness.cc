#include "server/catalog/staleness.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace attune::catalog {

std::string WhatChanged(const v1::Trial& trial, const Host& host) {
  const v1::Device* device = DeviceFor(trial, host);
  if (device == nullptr) return absl::StrCat("this host has no ", trial.device_id(), " to compare with");
  const v1::Dependencies& then = trial.dependencies();
  std::vector<std::string> changes;
  const FamilyList::Families families = host.families.Now();
  const auto family = std::find_if(families.begin(), families.end(), [&](const auto& candidate) {
    return candidate->name() == trial.variant().family();
  });
  if (family == families.end()) {
    changes.push_back(absl::StrCat("kernel family ", trial.variant().family(), " is no longer here"));
  } else if ((*family)->source_hash != then.source_hash()) {
    changes.push_back(absl::StrCat("source of ", trial.variant().family(), " changed"));
  }
  const absl::StatusOr<std::string> toolchain = Toolchain(host, device->backend());
  if (toolchain.ok() && *toolchain != then.toolchain()) {
    changes.push_back(absl::StrCat("toolchain was ", then.toolchain(), ", is ", *toolchain));
  }
  if (device->driver() != then.driver()) {
    changes.push_back(absl::StrCat("driver was ", then.driver(), ", is ", device->driver()));
  }
  if (device->fingerprint() != then.device_fingerprint()) {
    changes.push_back(absl::StrCat(device->id(), " is another device or has other limits"));
  }
  return absl::StrJoin(changes, "; ");
}

}  // namespace attune::catalog
