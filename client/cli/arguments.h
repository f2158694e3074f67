// Arguments that several commands share.
#ifndef ATTUNE_CLIENT_CLI_ARGUMENTS_H_
#define ATTUNE_CLIENT_CLI_ARGUMENTS_H_

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_join.h"
#include "attune/v1/service.pb.h"
#include "proto/attune/objective.h"

namespace attune::cli {

inline constexpr char kProblemHelp[] =
    "The problem, as b2.h8.q512.d64.f16: batch, query heads, query length, head dimension, and f16 or bf16. Where they "
    "differ, .kvh<heads> follows .h and .kv<length> follows .q; .kve4m3 or .kve5m2 says that keys and values have 8 "
    "bits. "
    "Options come last: .causal, .causal-br or .window<keys>, .softcap<x>, .sinks, .varlen or .bshd, .page<size>, .lse";
inline constexpr char kStandardInputHelp[] = ". With - problems are read from standard input, one per line";

inline CLI::Option* AddProblemArgument(CLI::App& app, std::string* problem) {
  return app.add_option("problem", *problem, kProblemHelp);
}

// As AddProblemArgument, for commands that take several.
inline CLI::Option* AddProblemsArgument(CLI::App& app, std::string* problem) {
  return app.add_option("problem", *problem, std::string(kProblemHelp) + kStandardInputHelp);
}

// As AddProblemsArgument, and each may be an argument of its own.
inline CLI::Option* AddSeveralProblemsArgument(CLI::App& app, std::vector<std::string>* problems) {
  return app.add_option("problem", *problems, std::string(kProblemHelp) + kStandardInputHelp);
}

// Of tune, space and sweep.
inline constexpr char kIgnoreAdviceHelp[] =
    "Search also what kernel families advise against: it was learned on other devices";

// One of a few words. Shown in the help, and completed, as TEXT:{a,b}.
inline CLI::Validator OneOf(const std::vector<std::string>& words) {
  return CLI::Validator(
      [words](const std::string& text) -> std::string {
        if (std::find(words.begin(), words.end(), text) != words.end()) return "";
        return "is '" + text + "'; allowed: " + absl::StrJoin(words, ", ");
      },
      "{" + absl::StrJoin(words, ",") + "}");
}

// An option that may be given again; each time takes one value, so that an argument may follow it.
inline CLI::Option* AddRepeatable(CLI::App& app, const std::string& name, std::vector<std::string>* values,
                                  const std::string& description) {
  return app.add_option(name, *values, description + "; may be given again")->allow_extra_args(false);
}

// `objective` stays as it is where the option is not given.
inline CLI::Option* AddObjective(CLI::App& app, v1::Objective* objective, const std::string& description) {
  return app
      .add_option_function<std::string>(
          "--objective",
          [objective](const std::string& word) {
            for (const v1::Objective one : {v1::OBJECTIVE_TIME, v1::OBJECTIVE_ENERGY, v1::OBJECTIVE_EDP}) {
              if (word == attune::Word(one)) *objective = one;
            }
          },
          description)
      ->check(OneOf({"time", "energy", "edp"}));
}

// Count is int64_t or uint64_t.
template <typename Count>
CLI::Option* AddCount(CLI::App& app, const std::string& name, Count* count, const std::string& description) {
  return app.add_option(name, *count, description)->check([](const std::string& text) {
    Count value = 0;
    const bool allowed = absl::SimpleAtoi(text, &value) && text.find('-') == std::string::npos;
    return allowed ? "" : "is " + text + "; allowed: integers >= 0";
  });
}

inline CLI::Option* AddMicros(CLI::App& app, const std::string& name, double* us, const std::string& description) {
  return app.add_option(name, *us, description + ", microseconds")->check([](const std::string& text) {
    double value = 0;
    const bool allowed = absl::SimpleAtod(text, &value) && std::isfinite(value) && value > 0;
    return allowed ? "" : "is " + text + "; allowed: numbers above 0";
  });
}

}  // namespace attune::cli

#endif  // ATTUNE_CLIENT_CLI_ARGUMENTS_H_
