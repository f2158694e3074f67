// The worker on the recipes that it shares with the clients' launchers, through the fake driver.
#include <map>

#include "gtest/gtest.h"
#include "server/device/cuda/runnable.h"
#include "tests/golden/recipes.h"

namespace attune::device::cuda {
namespace {

const v1::Device& Limits() {
  static const v1::Device limits = [] {
    v1::Device device;
    device.set_compute_capability(90);
    device.set_max_threads_per_block(1024);
    device.set_shared_bytes_per_block(227 << 10);
    return device;
  }();
  return limits;
}

// Buffers at the addresses that a vector says. The driver frees none of them.
class Memory {
 public:
  explicit Memory(const DriverApi& api) : api_(api) {}
  BufferView At(DevicePointer address, size_t bytes) {
    buffers_.push_back(std::make_unique<CudaBuffer>(cuda::Memory(api_, address), bytes));
    return {buffers_.back().get(), 0, bytes};
  }

 private:
  const DriverApi& api_;
  std::vector<std::unique_ptr<CudaBuffer>> buffers_;
};

// What a problem has, by the words of its text.
Bindings BindingsOf(const nlohmann::json& tensors, const std::string& problem, Memory& memory) {
  const auto has = [&](const char* word) { return problem.find(word) != std::string::npos; };
  const auto at = [&](const char* role) { return memory.At(tensors[role], 1 << 12); };
  Bindings bindings;
  bindings.q = at("Q");
  bindings.k = at("K");
  bindings.v = at("V");
  bindings.o = at("O");
  if (has(".lse")) bindings.lse = at("LSE");
  if (has(".sinks")) bindings.sinks = at("SINKS");
  if (has(".varlen")) bindings.q_bounds = at("Q_BOUNDS");
  if (has(".varlen") && !has(".page")) bindings.kv_bounds = at("KV_BOUNDS");
  if (has(".page")) bindings.kv_lengths = at("KV_LENGTHS");
  if (has(".page")) bindings.page_table = at("PAGE_TABLE");
  if (has(".kve")) bindings.k_scale = at("K_SCALE");
  if (has(".kve")) bindings.v_scale = at("V_SCALE");
  return bindings;
}

void PlaceScratch(const nlohmann::json& vector, const v1::LaunchRecipe& recipe, Memory& memory, Bindings& bindings) {
  DevicePointer ends[] = {vector.value("other", 0u), vector.value("zeroed", 0u)};
  for (const v1::ScratchBuffer& buffer : recipe.scratch()) {
    const auto bytes = static_cast<size_t>(buffer.bytes());
    DevicePointer& end = ends[buffer.zero_before_first_run() ? 1 : 0];
    bindings.scratch.push_back(bytes == 0 ? BufferView() : memory.At(end, bytes));
    end += (bytes + 255) / 256 * 256;
  }
}

TEST(GoldenRecipes, AreLaunchedAsTheyAreWritten) {
  testing::Reset();
  const absl::StatusOr<std::shared_ptr<const DriverApi>> api = DriverApi::Load();
  ASSERT_TRUE(api.ok()) << api.status();
  ContextHandle context = nullptr;
  ASSERT_EQ((*api)->DevicePrimaryCtxRetain(&context, 0), kSuccess);
  ASSERT_EQ((*api)->CtxSetCurrent(context), kSuccess);
  const nlohmann::json golden = Golden("recipes");
  for (const nlohmann::json& vector : golden["vectors"]) {
    const v1::LaunchRecipe recipe = RecipeOf(vector);
    Memory memory(**api);
    Bindings bindings = BindingsOf(golden["tensors"], vector["problem"], memory);
    PlaceScratch(vector, recipe, memory, bindings);
    ModuleHandle handle = nullptr;
    ASSERT_EQ((*api)->ModuleLoadDataEx(&handle, ModuleOf(recipe).c_str(), 0, nullptr, nullptr), kSuccess);
    const CudaModule module(LoadedModule(**api, handle));
    const auto runnable = CudaRunnable::Bind(**api, nullptr, Limits(), module, recipe, bindings);
    ASSERT_TRUE(runnable.ok()) << vector["name"] << runnable.status();
    ASSERT_EQ((*runnable)->Run(), absl::OkStatus());
    std::vector<std::string> launched;
    for (const testing::Launched& launch : testing::TakeLaunched()) launched.push_back(AsText(launch));
    EXPECT_EQ(launched, ExpectedOf(vector)) << vector["name"];
  }
}

}  // namespace
}  // namespace attune::device::cuda
