// Results of a tuner over fakes (server/jobs/testing/tuner_fixture.h).
#ifndef ATTUNE_SERVER_CATALOG_TESTING_RESULTS_FIXTURE_H_
#define ATTUNE_SERVER_CATALOG_TESTING_RESULTS_FIXTURE_H_

#include <gtest/gtest.h>

#include <list>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "server/catalog/results.h"
#include "server/catalog/testing/fake_host.h"
#include "server/jobs/testing/tuner_fixture.h"

namespace attune::catalog {

class ResultsTest : public jobs::TunerTest {
 protected:
  Host Today() {
    Host host = FakeHost();
    host.devices = {device_.device()};
    return host;
  }
  std::unique_ptr<Results> Open(Host host) {
    absl::StatusOr<std::unique_ptr<Results>> results = Results::Load(store_, hosts_.emplace_back(std::move(host)));
    EXPECT_TRUE(results.ok()) << results.status();
    return *std::move(results);
  }
  static v1::GetBestRequest Ask(const std::string& problem) {
    v1::GetBestRequest request;
    *request.mutable_problem() = ToProto(*ParseProblem(problem));
    request.set_device_id("cuda:0");
    request.set_policy(v1::POLICY_HOT);
    return request;
  }
  void TuneOne(std::map<std::string, double> times = {{"32/8", 40}}) {
    SetTimes(std::move(times));
    Start();
    Tune();
  }

  static ResultKey Key() { return {kProblem, "an L4", v1::POLICY_HOT}; }

  std::list<Host> hosts_;  // of Open
};

}  // namespace attune::catalog

#endif  // ATTUNE_SERVER_CATALOG_TESTING_RESULTS_FIXTURE_H_
