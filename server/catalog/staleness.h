// Whether what a trial found still holds today.
#ifndef ATTUNE_SERVER_CATALOG_STALENESS_H_
#define ATTUNE_SERVER_CATALOG_STALENESS_H_

#include <string>

#include "attune/v1/trial.pb.h"
#include "server/catalog/host.h"

namespace attune::catalog {

// What has changed since the trial of all it depends on, in words: its answer is STALE. Empty when nothing has.
std::string WhatChanged(const v1::Trial& trial, const Host& host);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_STALENESS_H_
