// Compiles the variants of problems' spaces for a device that need not be here, and lists what the compiler says of
// each: registers, spills, shared memory, and from them occupancy and waves under that device's limits. A code that
// several problems share is compiled once. Exits with 1 when a variant does not compile or asks for more than the
// device has.
//
//   space_report --worker=build/bin/attune-worker --profile=l4 --csv=space.csv b2.h8.q512.d64.f16 b1.h1.q128.d64.f16
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/synchronization/blocking_counter.h"
#include "proto/attune/problem.h"
#include "server/base/device_profile.h"
#include "server/space/space.h"
#include "server/supervisor/compile_pool.h"
#include "server/supervisor/probe.h"
#include "server/supervisor/worker_options.h"

ABSL_FLAG(std::string, profile, "l4", "the device's limits");
ABSL_FLAG(std::string, kernels_dir, ATTUNE_SOURCE_DIR "/kernels_src", "kernel families");
ABSL_FLAG(std::string, worker, "", "the attune-worker executable");
ABSL_FLAG(std::string, csv, "", "write one line a variant here");
ABSL_FLAG(std::vector<std::string>, families, {}, "only these kernel families");
ABSL_FLAG(std::string, only, "", "a file of lines 'PROBLEM VARIANT': these alone, and no problems on the command line");
ABSL_FLAG(bool, compile, true, "false: list the variants alone, without what the compiler says; needs no worker");
ABSL_FLAG(int, every, 1, "compile only every n-th code, for a quick check");

namespace attune {
namespace {

using Families = std::vector<std::shared_ptr<const space::Family>>;

struct Code {
  space::Variant example;  // one variant that needs it
  space::CompileSpec spec;
  bool compiled = false;
  absl::Status status;
  worker::v1::CompileResponse response;

  bool Good() const { return compiled && status.ok() && response.verdict() == v1::VERDICT_OK; }
};

struct Row {
  std::string problem;
  space::Variant variant;
  bool guess;  // what the family answers the problem with before anything is measured
  v1::LaunchRecipe recipe;
  std::string key;

  const v1::KernelLaunch& Main() const { return recipe.launches(recipe.main_launch()); }
};

struct Space {
  std::vector<Row> rows;  // problem by problem, family by family
  std::map<std::string, Code> codes;
};

struct Totals {
  int64_t variants = 0, codes = 0, failed = 0, spilling = 0, spilling_codes = 0, over_shared = 0;
  int64_t losing = 0;
  int64_t most_registers = 0, most_shared = 0;
};

worker::v1::CompileRequest RequestFor(const Code& code, const v1::Device& device) {
  worker::v1::CompileRequest request;
  const space::Family& family = *code.example.family;
  request.set_backend(family.manifest.backend());
  request.set_target(device.target());
  for (const auto& [path, text] : family.sources) {
    worker::v1::SourceFile& file = *request.add_sources();
    file.set_path(path);
    file.set_text(text);
  }
  request.mutable_options()->Add(code.spec.options.begin(), code.spec.options.end());
  request.mutable_entries()->Add(code.spec.entries.begin(), code.spec.entries.end());
  return request;
}

// Of the main launch's kernel.
worker::v1::CompileResponse::Entry EntryOf(const worker::v1::CompileResponse& response, const v1::KernelLaunch& main) {
  for (const auto& entry : response.entries()) {
    if (entry.name() == main.entry()) return entry;
  }
  return {};
}

// What the recipe asks for included.
v1::Resources ResourcesOf(const worker::v1::CompileResponse& response, const v1::KernelLaunch& main) {
  const worker::v1::CompileResponse::Entry entry = EntryOf(response, main);
  v1::Resources resources;
  resources.set_registers(entry.registers());
  resources.set_spill_bytes(entry.spill_bytes());
  resources.set_stack_bytes(entry.stack_bytes());
  resources.set_shared_bytes(entry.static_shared_bytes() + main.dynamic_shared_bytes());
  return resources;
}

absl::Status AddVariant(const Problem& problem, const space::Variant& variant, bool guess, const v1::Device& device,
                        Space& space) {
  const auto spec = space::SpecFor(variant, problem, device);
  if (!spec.ok()) return spec.status();
  auto recipe = space::RecipeFor(variant, problem, device);
  if (!recipe.ok()) return recipe.status();
  space.codes.try_emplace(spec->key, Code{variant, *spec, false, absl::OkStatus(), {}});
  space.rows.push_back({ToText(problem), variant, guess, *std::move(recipe), spec->key});
  return absl::OkStatus();
}

absl::Status AddProblem(const Problem& problem, const Families& families, const v1::Device& device, Space& space) {
  for (const auto& family : families) {
    if (!space::Applies(*family, problem, device).ok()) continue;
    const auto enumeration = space::Enumerate(family, problem, device);
    if (!enumeration.ok()) return enumeration.status();
    if (enumeration->variants.empty()) continue;
    const auto guess = space::Guess(family, problem, device);
    if (!guess.ok()) return guess.status();
    for (const space::Variant& variant : enumeration->variants) {
      const absl::Status status = AddVariant(problem, variant, variant.values == guess->values, device, space);
      if (!status.ok()) return status;
    }
  }
  return absl::OkStatus();
}

absl::Status AddNamed(const std::string& path, const Families& families, const v1::Device& device, Space& space) {
  std::ifstream file(path);
  if (!file) return absl::NotFoundError(absl::StrCat("--only is '", path, "', which cannot be read"));
  std::string problem_text, variant_text;
  while (file >> problem_text >> variant_text) {
    const auto problem = ParseProblem(problem_text);
    if (!problem.ok()) return problem.status();
    const auto variant = space::ParseVariant(variant_text, families);
    if (!variant.ok()) return variant.status();
    const auto guess = space::Guess(variant->family, *problem, device);
    if (!guess.ok()) return guess.status();
    const absl::Status status = AddVariant(*problem, *variant, variant->values == guess->values, device, space);
    if (!status.ok()) return status;
  }
  return absl::OkStatus();
}

void Compile(const v1::Device& device, supervisor::CompilePool& pool, Space& space) {
  std::vector<Code*> chosen;
  int64_t number = 0;
  for (auto& [key, code] : space.codes) {
    if (number++ % absl::GetFlag(FLAGS_every) == 0) chosen.push_back(&code);
  }
  absl::BlockingCounter left(static_cast<int>(chosen.size()));
  for (Code* code : chosen) {
    code->compiled = true;
    pool.Submit(RequestFor(*code, device), 0, [code, &left](absl::StatusOr<worker::v1::CompileResponse> response) {
      code->status = response.status();
      if (response.ok()) code->response = *std::move(response);
      left.DecrementCount();
    });
  }
  left.Wait();
  for (const Code* code : chosen) {
    if (code->Good()) continue;
    const std::string why =
        code->status.ok() ? std::string(Word(code->response.verdict())) : std::string(code->status.message());
    std::fprintf(stderr, "%s: %s\n%s\n", code->example.ToText().c_str(), why.c_str(), code->response.log().c_str());
  }
}

void WriteCsv(const Space& space, const v1::Device& device, bool compiled, const std::string& path) {
  std::ofstream csv(path);
  csv << "problem,variant,guess,threads,ctas,shared_bytes";
  csv << (compiled ? ",registers,spill_bytes,stack_bytes,ctas_per_sm,waves,occupancy,performance_loss\n" : "\n");
  for (const Row& row : space.rows) {
    const Code& code = space.codes.at(row.key);
    if (compiled && !code.Good()) continue;
    v1::Resources resources;
    resources.set_shared_bytes(row.Main().dynamic_shared_bytes());
    if (compiled) resources = ResourcesOf(code.response, row.Main());
    const v1::Geometry geometry = space::GeometryOf(row.recipe, resources, device);
    csv << row.problem << ",\"" << row.variant.ToText() << "\"," << row.guess << ',' << geometry.threads_per_cta()
        << ',' << geometry.ctas() << ',' << resources.shared_bytes();
    if (compiled) {
      csv << ',' << resources.registers() << ',' << resources.spill_bytes() << ',' << resources.stack_bytes() << ','
          << geometry.ctas_per_sm() << ',' << absl::StrFormat("%.3f,%.3f", geometry.waves(), geometry.occupancy())
          << ",\"" << EntryOf(code.response, row.Main()).performance_loss() << '"';
    }
    csv << '\n';
  }
}

Totals Total(const std::vector<const Row*>& rows, const Space& space, const v1::Device& device) {
  Totals totals;
  std::map<std::string, bool> spills;
  for (const Row* row : rows) {
    const Code& code = space.codes.at(row->key);
    if (!code.compiled) continue;
    if (spills.try_emplace(row->key, false).second) {
      ++totals.codes;
      totals.failed += !code.Good();
    }
    if (!code.Good()) continue;
    const v1::Resources resources = ResourcesOf(code.response, row->Main());
    ++totals.variants;
    totals.spilling += resources.spill_bytes() > 0;
    spills[row->key] = resources.spill_bytes() > 0;
    totals.losing += !EntryOf(code.response, row->Main()).performance_loss().empty();
    totals.over_shared += resources.shared_bytes() > device.shared_bytes_per_block();
    totals.most_registers = std::max(totals.most_registers, resources.registers());
    totals.most_shared = std::max(totals.most_shared, resources.shared_bytes());
  }
  for (const auto& [key, spilling] : spills) totals.spilling_codes += spilling;
  return totals;
}

void Print(const std::string& problem, const std::string& family, const Totals& totals) {
  std::printf("| %s | %s | %ld | %ld | %ld | %ld | %ld | %ld | %ld | %ld | %ld |\n", problem.c_str(), family.c_str(),
              totals.variants, totals.codes, totals.failed, totals.spilling_codes, totals.spilling,
              totals.most_registers, totals.most_shared, totals.over_shared, totals.losing);
}

// A line for each problem and family, and one for each family over all problems. False when something does not compile
// or asks for more shared memory than a block may have.
bool PrintTotals(const Space& space, const v1::Device& device) {
  std::printf(
      "| problem | family | variants | codes | do not compile | codes that spill | variants that spill | "
      "most registers | most shared bytes | over the limit of %ld | variants with a performance loss |\n"
      "|---|---|---|---|---|---|---|---|---|---|---|\n",
      static_cast<long>(device.shared_bytes_per_block()));
  std::map<std::string, std::vector<const Row*>> by_family;
  std::vector<const Row*> together;
  for (size_t i = 0; i < space.rows.size(); ++i) {
    const Row& row = space.rows[i];
    together.push_back(&row);
    by_family[row.variant.family->name()].push_back(&row);
    const Row* next = i + 1 < space.rows.size() ? &space.rows[i + 1] : nullptr;
    if (next != nullptr && next->problem == row.problem && next->variant.family == row.variant.family) continue;
    Print(row.problem, row.variant.family->name(), Total(together, space, device));
    together.clear();
  }
  bool good = true;
  for (const auto& [name, rows] : by_family) {
    const Totals totals = Total(rows, space, device);
    Print("all", name, totals);
    good = good && totals.failed == 0 && totals.over_shared == 0;
  }
  return good;
}

absl::StatusOr<Families> ChosenFamilies(v1::Backend backend) {
  const auto all = space::LoadFamilies(absl::GetFlag(FLAGS_kernels_dir));
  if (!all.ok()) return all.status();
  const std::vector<std::string> names = absl::GetFlag(FLAGS_families);
  Families chosen;
  for (const auto& family : *all) {
    if (family->manifest.backend() != backend || family->manifest.role() > family::v1::ROLE_SEARCH) continue;
    if (names.empty() || std::find(names.begin(), names.end(), family->name()) != names.end()) chosen.push_back(family);
  }
  return chosen;
}

absl::StatusOr<bool> Report(const std::vector<Problem>& problems) {
  const auto device = DeviceProfile(absl::GetFlag(FLAGS_profile));
  if (!device.ok()) return device.status();
  const auto families = ChosenFamilies(device->backend());
  if (!families.ok()) return families.status();
  Space space;
  for (const Problem& problem : problems) {
    const absl::Status status = AddProblem(problem, *families, *device, space);
    if (!status.ok()) return status;
  }
  if (const std::string only = absl::GetFlag(FLAGS_only); !only.empty()) {
    const absl::Status status = AddNamed(only, *families, *device, space);
    if (!status.ok()) return status;
  }
  const bool compile = absl::GetFlag(FLAGS_compile);
  bool good = true;
  if (compile) {
    supervisor::WorkerOptions options;
    options.executable = absl::GetFlag(FLAGS_worker);
    const auto host = supervisor::ProbeHost(options);
    if (!host.ok()) return host.status();
    const auto pool = supervisor::MakeCompilePool(options, *host);
    const auto toolchain = pool->Toolchain(device->backend());
    if (!toolchain.ok()) return toolchain.status();
    Compile(*device, *pool, space);
    std::printf("%s (%s), %s\n\n", device->model().c_str(), device->target().c_str(), toolchain->c_str());
    good = PrintTotals(space, *device);
  }
  if (const std::string csv = absl::GetFlag(FLAGS_csv); !csv.empty()) WriteCsv(space, *device, compile, csv);
  return good;
}

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("space_report [flags] PROBLEM...: compiles spaces for a device, lists their resources");
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if ((rest.size() < 2) == absl::GetFlag(FLAGS_only).empty()) {
    std::fprintf(stderr, "space_report: needs problems, such as b2.h8.q512.d64.f16, or --only\n");
    return 2;
  }
  std::vector<attune::Problem> problems;
  for (size_t i = 1; i < rest.size(); ++i) {
    const auto problem = attune::ParseProblem(rest[i]);
    if (!problem.ok()) {
      std::fprintf(stderr, "space_report: %s\n", std::string(problem.status().message()).c_str());
      return 2;
    }
    problems.push_back(*problem);
  }
  const auto good = attune::Report(problems);
  if (!good.ok()) {
    std::fprintf(stderr, "space_report: %s\n", std::string(good.status().message()).c_str());
    return 1;
  }
  return *good ? 0 : 1;
}
