// What metrics are told of the writer's commits.
#include <string>

#include "gtest/gtest.h"
#include "prometheus/registry.h"
#include "server/metrics/store.h"
#include "server/store/sqlite/database.h"
#include "server/store/sqlite/writer.h"
#include "server/store/testing/test_directory.h"

namespace attune::store::sqlite {
namespace {

double ValueOf(const metrics::Families& families, const std::string& name) {
  for (const auto& family : families) {
    if (family.name != name) continue;
    const auto& metric = family.metric.at(0);
    return family.type == prometheus::MetricType::Histogram ? static_cast<double>(metric.histogram.sample_count)
           : family.type == prometheus::MetricType::Gauge   ? metric.gauge.value
                                                            : metric.counter.value;
  }
  return -1;
}

TEST(CountedWrites, SayHowManyAndWhetherTheDiskTookThem) {
  const TestDirectory directory;
  prometheus::Registry registry;
  metrics::Store metrics(registry);
  const auto state = [&metrics](const char* name) {
    metrics::Families families;
    metrics.Collect(families);
    return ValueOf(families, name);
  };
  {
    Writer writer(OpenWriter(directory.path() + "/attune.db").value(), &metrics);
    EXPECT_TRUE(writer.Write([](Connection&) { return absl::OkStatus(); }).ok());
    EXPECT_FALSE(writer.Write([](Connection&) { return absl::AbortedError("its own"); }).ok());
    EXPECT_EQ(state("attune_store_writable"), 1);
    EXPECT_EQ(ValueOf(registry.Collect(), "attune_store_write_failures_total"), 0);
    EXPECT_FALSE(writer.Write([](Connection&) { return absl::ResourceExhaustedError("disk full"); }).ok());
    EXPECT_EQ(ValueOf(registry.Collect(), "attune_store_write_failures_total"), 1);
    EXPECT_EQ(ValueOf(registry.Collect(), "attune_store_writes_total"), 3);
    EXPECT_EQ(ValueOf(registry.Collect(), "attune_store_commit_seconds"), 3);
    EXPECT_TRUE(writer.Write([](Connection&) { return absl::OkStatus(); }).ok());
    EXPECT_EQ(state("attune_store_writes_waiting"), 0);
  }
  EXPECT_EQ(state("attune_store_writable"), -1) << "nobody is there to ask";
}

}  // namespace
}  // namespace attune::store::sqlite
