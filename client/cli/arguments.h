// Arguments that several commands share.
#ifndef ATTUNE_CLIENT_CLI_ARGUMENTS_H_
#define ATTUNE_CLIENT_CLI_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <string>
#include <vector>

namespace attune::cli {

inline CLI::Option* AddProblemArgument(CLI::App& app, std::string* problem) {
  return app.add_option("problem", *problem,
                        "The problem: b<batch>.h<heads>[.kvh<kv heads>].q<length>[.kv<length>].d<head dim>.<f16|bf16>"
                        "[.causal|.causal-br|.window<keys>][.softcap<x>][.sinks][.varlen|.bshd][.page<size>][.lse]");
}

// An option that may be given again; each time takes one value, so that an argument may follow it.
inline CLI::Option* AddRepeatable(CLI::App& app, const std::string& name, std::vector<std::string>* values,
                                  const std::string& description) {
  return app.add_option(name, *values, description + "; may be given again")->allow_extra_args(false);
}

inline CLI::Option* AddCount(CLI::App& app, const std::string& name, int64_t* count, const std::string& description) {
  return app.add_option(name, *count, description)->check([](const std::string& text) {
    return text.find('-') == std::string::npos ? "" : "is " + text + "; allowed are whole numbers from 0 on";
  });
}

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_ARGUMENTS_H_
