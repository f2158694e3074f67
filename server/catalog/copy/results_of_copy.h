// What is known of problems, from a copy: until the store is back.
#ifndef ATTUNE_SERVER_CATALOG_COPY_RESULTS_OF_COPY_H_
#define ATTUNE_SERVER_CATALOG_COPY_RESULTS_OF_COPY_H_

#include <memory>

#include "attune/served/v1/served.pb.h"
#include "server/catalog/answers/code_supply.h"
#include "server/catalog/host.h"
#include "server/catalog/results.h"
#include "server/store/store.h"

namespace attune::catalog {

// As Results::Load, from `copy`: the store is not asked for incumbents and baselines before Reload, which exchanges all
// answers for those of the store once it is there. Until then each answer says that it comes from a copy, and of when.
std::unique_ptr<Results> LoadFromCopy(const served::v1::Copy& copy, store::Store& store, const Host& host,
                                      CodeSupply* supply = nullptr, Forecasts* forecasts = nullptr);

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_COPY_RESULTS_OF_COPY_H_
