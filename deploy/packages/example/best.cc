// Prints the best known variant for a problem: best PROBLEM [SERVER]
#include <iostream>

#include "client/cpp/client.h"

int main(int argc, char** argv) {
  if (argc < 2) {
    std::cerr << "usage: best PROBLEM [SERVER]\n";
    return 2;
  }
  const auto problem = attune::ParseProblem(argv[1]);
  if (!problem.ok()) {
    std::cerr << problem.status() << "\n";
    return 2;
  }
  const auto client = attune::Client::Connect(argc > 2 ? argv[2] : "unix:/run/attune/attuned.sock");
  if (!client.ok()) {
    std::cerr << client.status() << "\n";
    return 1;
  }
  const auto best = (*client)->GetBest({.problem = *problem});
  if (!best.ok()) {
    std::cerr << best.status() << "\n";
    return 1;
  }
  std::cout << (*best)->variant().text() << "\n" << (*best)->timing().median_us() << " us\n";
  return 0;
}
