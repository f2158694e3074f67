// Which variant is expected to be the fastest for a problem that nobody tuned, by somebody who has learned from what
// was tuned.
#ifndef ATTUNE_SERVER_CATALOG_FORECASTS_H_
#define ATTUNE_SERVER_CATALOG_FORECASTS_H_

#include <cstddef>
#include <cstdint>
#include <optional>

#include "attune/v1/device.pb.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/problem.h"
#include "server/space/space.h"

namespace attune::catalog {

struct Forecast {
  space::Variant variant;
  size_t among = 0;     // variants that it was chosen from
  size_t problems = 0;  // tuned ones that it was learned from
  size_t shipped = 0;   // of these not on this host, but before the daemon was shipped
};

// Thread-safe.
class Forecasts {
 public:
  virtual ~Forecasts() = default;

  // Never blocks. nullopt where nothing is to be said of the problem, or not yet: it is worked out from then on.
  virtual std::optional<Forecast> Ask(const Problem& problem, const v1::Device& device, v1::Policy policy) = 0;
  // Grows whenever Ask may say something else than before.
  virtual uint64_t version() const = 0;
};

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_FORECASTS_H_
