// How alike any two problems are: unlike catalog::Distance it compares those of other code, too.
#ifndef ATTUNE_CLIENT_REPLAY_LIKENESS_H_
#define ATTUNE_CLIENT_REPLAY_LIKENESS_H_

#include <vector>

#include "client/replay/tuned_problem.h"
#include "proto/attune/problem.h"

namespace attune::replay {

// In octaves of batch * heads_q, heads_q / heads_kv, seq_q and seq_kv, and of head_dim twice; one more each for another
// mask, for 8-bit keys beside 16-bit ones, for a softcap and for pages; half of one for another dtype. 0: alike.
double Unlikeness(const Problem& a, const Problem& b);

// The most alike first; of equally alike ones in the order of their texts.
std::vector<const TunedProblem*> MostAlikeFirst(std::vector<const TunedProblem*> tuned, const Problem& problem);

}  // namespace attune::replay

#endif  // ATTUNE_CLIENT_REPLAY_LIKENESS_H_
