// Whether constraints that advise count beside those that forbid (family.proto, Constraint.advice).
#ifndef ATTUNE_SERVER_SPACE_ADVICE_H_
#define ATTUNE_SERVER_SPACE_ADVICE_H_

namespace attune::space {

enum class Advice { kHeeded, kIgnored };

// As a request says it.
inline Advice AdviceOf(bool ignored) { return ignored ? Advice::kIgnored : Advice::kHeeded; }

}  // namespace attune::space

#endif  // ATTUNE_SERVER_SPACE_ADVICE_H_
