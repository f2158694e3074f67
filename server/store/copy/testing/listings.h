// All that a store says of what it holds, for tests that compare stores.
#ifndef ATTUNE_SERVER_STORE_COPY_TESTING_LISTINGS_H_
#define ATTUNE_SERVER_STORE_COPY_TESTING_LISTINGS_H_

#include <string>
#include <vector>

#include "server/store/store.h"

namespace attune::store::copy {

struct Listing {
  std::string name;
  std::vector<std::string> lines;
};

// Every listing, in pages of several sizes and under each filter, and each thing that is listed by itself. Times that a
// store takes from the clock are left out. `leases`: with who holds the jobs, which is not copied.
std::vector<Listing> Listings(Store& store, bool leases);

// Fails the test at the first difference of each listing.
void ExpectSameListings(const std::vector<Listing>& one, const std::vector<Listing>& other);

}  // namespace attune::store::copy

#endif  // ATTUNE_SERVER_STORE_COPY_TESTING_LISTINGS_H_
