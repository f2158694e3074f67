// What a strategy knows before it asks for anything: the candidates as numbers.
#ifndef ATTUNE_SERVER_SEARCH_FIELD_H_
#define ATTUNE_SERVER_SEARCH_FIELD_H_

#include <cstddef>
#include <optional>
#include <vector>

namespace attune::search {

// Candidates that are likely to be good, best first.
struct Likely {
  // Served now: every strategy begins with it, and its budget counts it. It takes part in the play-off, and a good
  // leader makes racing short.
  std::optional<size_t> incumbent = {};
  std::vector<size_t> priors;   // timed on other cards: every strategy goes on with them
  std::vector<size_t> guesses;  // never timed: all but EXHAUSTIVE go on with them

  // The number of each candidate's family, 0..n-1: RANDOM then draws from the families in turn, so that none is lost
  // among another's thousands. Empty: all are of one.
  std::vector<size_t> families = {};
};

struct Field {
  size_t candidates = 0;
  Likely likely;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_FIELD_H_
