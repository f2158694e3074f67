// What a strategy knows before it asks for anything: the candidates as numbers, and every trial that can say something
// of them. Plain data, so that a recorded space is a field like any other (client/replay).
#ifndef ATTUNE_SERVER_SEARCH_FIELD_H_
#define ATTUNE_SERVER_SEARCH_FIELD_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
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

// How a trial ended, as far as a model learns from it.
struct Outcome {
  bool ok = false;  // right and timed
  double us = 0;    // when ok

  static Outcome Failed() { return {}; }
  static Outcome Timed(double us) { return {true, us}; }
};

// A candidate as a point of its space.
struct Point {
  size_t family = 0;             // its number, 0..n-1
  std::vector<int64_t> values;   // of its family's parameters, in the manifest's order
  std::vector<double> features;  // of Field::features; kMissing where its family has no such name
};

inline constexpr double kMissing = -1e6;

// A trial of another problem of the same card, or one that was shipped for its model, under the same sources, as that
// problem's point.
struct NeighbourRow {
  size_t family = 0;             // as in Point
  std::vector<double> features;  // of Field::features
  Outcome outcome;
};

struct Neighbour {
  double distance = 0;  // in octaves (catalog::Distance)
  std::vector<NeighbourRow> rows;
};

struct Field {
  size_t candidates = 0;
  Likely likely;
  std::vector<std::string> features;  // names: parameters, then lets
  std::vector<Point> points;          // of every candidate, or none
  std::vector<size_t> codes;          // the number of each candidate's compiled code, 0..n-1; none: each has its own
  std::vector<std::pair<size_t, Outcome>> known;
  int64_t spent = 0;                  // of the budget: this job's by an earlier process, or all that were known
  size_t cards = 1;                   // that take trials, each one at a time
  size_t compilers = 0;               // that compile for them, each one code at a time; 0: not known
  std::vector<Neighbour> neighbours;  // nearest first
  // ln(time) of each candidate, but for what all share, as learned from all that was tuned on the card's class, or
  // shipped for its model (forecast::ClassModel); or none.
  std::vector<double> expected;
};

}  // namespace attune::search

#endif  // ATTUNE_SERVER_SEARCH_FIELD_H_
