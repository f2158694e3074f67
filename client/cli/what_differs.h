// Variants where there is no room for them whole.
#ifndef ATTUNE_CLIENT_CLI_WHAT_DIFFERS_H_
#define ATTUNE_CLIENT_CLI_WHAT_DIFFERS_H_

#include <string>
#include <vector>

namespace attune::cli {

// Of variants such as "attention_simt:BLOCK_M=64,VEC=4" what tells them apart: "...VEC=4". The family goes where all
// have the same one, a parameter where all of its family have the same value; "..." stands for what went. Rows without
// a variant ("") do not count. Where all are equal, they stay whole.
std::vector<std::string> WhatDiffers(const std::vector<std::string>& variants);

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_WHAT_DIFFERS_H_
