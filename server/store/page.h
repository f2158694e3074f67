// A page of a listing.
#ifndef ATTUNE_SERVER_STORE_PAGE_H_
#define ATTUNE_SERVER_STORE_PAGE_H_

#include <string>
#include <vector>

namespace attune::store {

template <typename T>
struct Page {
  std::vector<T> items;
  std::string next_page_token;  // empty: this was the last
};

}  // namespace attune::store

#endif  // ATTUNE_SERVER_STORE_PAGE_H_
