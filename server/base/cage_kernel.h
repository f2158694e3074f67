// What the kernel of this host can do of the cage that workers are in (docs/design.md, The cage).
#ifndef ATTUNE_SERVER_BASE_CAGE_KERNEL_H_
#define ATTUNE_SERVER_BASE_CAGE_KERNEL_H_

#include <string>
#include <vector>

namespace attune {

// The version of Landlock's interface; 0 where there is none, or it is switched off.
int LandlockVersion();

// What is missing and what follows from it, a sentence each; empty when the cage is whole. Changes nothing.
std::vector<std::string> MissingWalls();

}  // namespace attune

#endif  // ATTUNE_SERVER_BASE_CAGE_KERNEL_H_
