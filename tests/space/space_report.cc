// Compiles every variant of a problem's space for a device that need not be here, and lists what the compiler says of
// each: registers, spills, shared memory, and from them occupancy and waves under that device's limits. Exits with 1
// when a variant does not compile or asks for more than the device has.
//
//   space_report --worker=build/bin/attune-worker --profile=l4 --csv=space.csv b2.h8.q512.d64.f16
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/flags/parse.h"
#include "absl/flags/usage.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "absl/synchronization/blocking_counter.h"
#include "absl/synchronization/mutex.h"
#include "proto/attune/problem.h"
#include "server/base/device_profile.h"
#include "server/space/space.h"
#include "server/workers/workers.h"

ABSL_FLAG(std::string, profile, "l4", "the device's limits");
ABSL_FLAG(std::string, kernels_dir, ATTUNE_SOURCE_DIR "/kernels_src", "kernel families");
ABSL_FLAG(std::string, worker, "", "the attune-worker executable");
ABSL_FLAG(std::string, csv, "", "write one line a variant here");
ABSL_FLAG(int, every, 1, "compile only every n-th code, for a quick check");

namespace attune {
namespace {

struct Code {
  space::Variant example;  // one variant that needs it
  space::CompileSpec spec;
  worker::v1::CompileResponse response;
  absl::Status status;
};

struct Row {
  space::Variant variant;
  v1::LaunchRecipe recipe;
  std::string key;
};

struct Totals {
  int64_t variants = 0, codes = 0, failed = 0, spilling = 0, spilling_codes = 0, over_shared = 0;
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

// Of the main launch's kernel; `dynamic` is what the recipe asks for beside the static part.
v1::Resources ResourcesOf(const worker::v1::CompileResponse& response, const v1::KernelLaunch& main) {
  v1::Resources resources;
  for (const auto& entry : response.entries()) {
    if (entry.name() != main.entry()) continue;
    resources.set_registers(entry.registers());
    resources.set_spill_bytes(entry.spill_bytes());
    resources.set_stack_bytes(entry.stack_bytes());
    resources.set_shared_bytes(entry.static_shared_bytes() + main.dynamic_shared_bytes());
  }
  return resources;
}

absl::StatusOr<Totals> ReportFamily(std::shared_ptr<const space::Family> family, const Problem& problem,
                                    const v1::Device& device, workers::CompilePool& pool, std::ofstream& csv) {
  const auto enumeration = space::Enumerate(family, problem, device);
  if (!enumeration.ok()) return enumeration.status();
  std::map<std::string, Code> codes;
  std::vector<Row> rows;
  for (const space::Variant& variant : enumeration->variants) {
    const auto spec = space::SpecFor(variant, problem, device);
    if (!spec.ok()) return spec.status();
    const auto recipe = space::RecipeFor(variant, problem, device);
    if (!recipe.ok()) return recipe.status();
    codes.try_emplace(spec->key, Code{variant, *spec, {}, absl::UnknownError("not compiled")});
    rows.push_back({variant, *recipe, spec->key});
  }

  std::vector<Code*> chosen;
  int64_t number = 0;
  for (auto& [key, code] : codes) {
    if (number++ % absl::GetFlag(FLAGS_every) == 0) chosen.push_back(&code);
  }
  absl::BlockingCounter left(static_cast<int>(chosen.size()));
  for (Code* code : chosen) {
    pool.Submit(RequestFor(*code, device), 0, [code, &left](absl::StatusOr<worker::v1::CompileResponse> response) {
      code->status = response.status();
      if (response.ok()) code->response = *std::move(response);
      left.DecrementCount();
    });
  }
  left.Wait();

  Totals totals;
  totals.codes = static_cast<int64_t>(chosen.size());
  for (const Code* code : chosen) {
    if (code->status.ok() && code->response.verdict() == v1::VERDICT_OK) continue;
    ++totals.failed;
    std::fprintf(
        stderr, "%s: %s\n%s\n", code->example.ToText().c_str(),
        code->status.ok() ? std::string(Word(code->response.verdict())).c_str() : code->status.ToString().c_str(),
        code->response.log().c_str());
  }
  std::map<std::string, bool> spills;
  for (const Row& row : rows) {
    const Code& code = codes.at(row.key);
    if (!code.status.ok() || code.response.verdict() != v1::VERDICT_OK) continue;
    const v1::Resources resources = ResourcesOf(code.response, row.recipe.launches(row.recipe.main_launch()));
    const v1::Geometry geometry = space::GeometryOf(row.recipe, resources, device);
    ++totals.variants;
    totals.spilling += resources.spill_bytes() > 0;
    spills[row.key] = resources.spill_bytes() > 0;
    totals.over_shared += resources.shared_bytes() > device.shared_bytes_per_block();
    totals.most_registers = std::max(totals.most_registers, resources.registers());
    totals.most_shared = std::max(totals.most_shared, resources.shared_bytes());
    csv << '"' << row.variant.ToText() << '"' << ',' << resources.registers() << ',' << resources.spill_bytes() << ','
        << resources.stack_bytes() << ',' << resources.shared_bytes() << ',' << geometry.threads_per_cta() << ','
        << geometry.ctas() << ',' << geometry.ctas_per_sm() << ',' << absl::StrFormat("%.3f", geometry.waves()) << ','
        << absl::StrFormat("%.3f", geometry.occupancy()) << '\n';
  }
  for (const auto& [key, spilling] : spills) totals.spilling_codes += spilling;
  return totals;
}

absl::StatusOr<bool> Report(const Problem& problem) {
  const auto device = DeviceProfile(absl::GetFlag(FLAGS_profile));
  if (!device.ok()) return device.status();
  const auto families = space::LoadFamilies(absl::GetFlag(FLAGS_kernels_dir));
  if (!families.ok()) return families.status();
  workers::WorkerOptions options;
  options.executable = absl::GetFlag(FLAGS_worker);
  const auto host = workers::ProbeHost(options);
  if (!host.ok()) return host.status();
  const auto pool = workers::MakeCompilePool(options, *host);
  const auto toolchain = pool->Toolchain(device->backend());
  if (!toolchain.ok()) return toolchain.status();
  std::ofstream csv;
  if (!absl::GetFlag(FLAGS_csv).empty()) csv.open(absl::GetFlag(FLAGS_csv));
  csv << "variant,registers,spill_bytes,stack_bytes,shared_bytes,threads,ctas,ctas_per_sm,waves,occupancy\n";

  std::printf("%s on %s (%s), %s\n\n", ToText(problem).c_str(), device->model().c_str(), device->target().c_str(),
              toolchain->c_str());
  std::printf(
      "| family | variants | codes | do not compile | codes that spill | variants that spill | most registers | "
      "most shared bytes | over the limit of %d |\n|---|---|---|---|---|---|---|---|---|\n",
      static_cast<int>(device->shared_bytes_per_block()));
  bool good = true;
  for (const auto& family : *families) {
    if (family->manifest.backend() != device->backend() || family->manifest.role() > family::v1::ROLE_SEARCH) continue;
    if (!space::Applies(*family, problem, *device).ok()) continue;
    const auto totals = ReportFamily(family, problem, *device, *pool, csv);
    if (!totals.ok()) return totals.status();
    std::printf("| %s | %ld | %ld | %ld | %ld | %ld | %ld | %ld | %ld |\n", family->name().c_str(), totals->variants,
                totals->codes, totals->failed, totals->spilling_codes, totals->spilling, totals->most_registers,
                totals->most_shared, totals->over_shared);
    good = good && totals->failed == 0 && totals->over_shared == 0;
  }
  return good;
}

}  // namespace
}  // namespace attune

int main(int argc, char** argv) {
  absl::SetProgramUsageMessage("space_report [flags] PROBLEM: compiles a space for a device and lists its resources");
  const std::vector<char*> rest = absl::ParseCommandLine(argc, argv);
  if (rest.size() != 2) {
    std::fprintf(stderr, "space_report: needs one problem, such as b2.h8.q512.d64.f16\n");
    return 2;
  }
  const auto problem = attune::ParseProblem(rest[1]);
  if (!problem.ok()) {
    std::fprintf(stderr, "space_report: %s\n", std::string(problem.status().message()).c_str());
    return 2;
  }
  const auto good = attune::Report(*problem);
  if (!good.ok()) {
    std::fprintf(stderr, "space_report: %s\n", std::string(good.status().message()).c_str());
    return 1;
  }
  return *good ? 0 : 1;
}
