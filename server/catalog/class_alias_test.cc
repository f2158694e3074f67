#include "server/catalog/class_alias.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace attune::catalog {
namespace {

using ::testing::ElementsAre;

v1::Device DeviceOf(const std::string& model, const std::string& fingerprint, v1::Backend backend = v1::BACKEND_CUDA) {
  v1::Device device;
  device.set_backend(backend);
  device.set_model(model);
  device.set_fingerprint(fingerprint);
  return device;
}

std::vector<std::string> Aliases(std::vector<v1::Device> devices) {
  NameClasses(devices);
  std::vector<std::string> aliases;
  for (const v1::Device& device : devices) aliases.push_back(device.class_alias());
  return aliases;
}

TEST(ClassAlias, IsTheProfilesNameWhereThereIsOne) {
  EXPECT_THAT(Aliases({DeviceOf("NVIDIA L4", "a"), DeviceOf("NVIDIA A100-SXM4-80GB", "b"),
                       DeviceOf("NVIDIA GeForce RTX 4090", "c")}),
              ElementsAre("l4", "a100", "rtx4090"));
}

TEST(ClassAlias, IsTheModelWithoutItsVendorOtherwise) {
  EXPECT_THAT(Aliases({DeviceOf("NVIDIA RTX 6000 Ada Generation", "a"), DeviceOf("Tesla T4", "b"),
                       DeviceOf("NVIDIA H200 MIG 1g.18gb", "c"), DeviceOf("", "d")}),
              ElementsAre("rtx-6000-ada-generation", "t4", "h200-mig-1g-18gb", "device"));
}

TEST(ClassAlias, IsTheFirstWordOfAnOpenClDevice) {
  EXPECT_THAT(Aliases({DeviceOf("pthread-AMD EPYC 7B13", "a", v1::BACKEND_OPENCL),
                       DeviceOf("basic-AMD EPYC 7B13", "b", v1::BACKEND_OPENCL)}),
              ElementsAre("pthread", "basic"));
}

TEST(ClassAlias, IsSharedByTheCardsOfAClassAlone) {
  EXPECT_THAT(Aliases({DeviceOf("NVIDIA L4", "0123456"), DeviceOf("NVIDIA L4", "0123456")}), ElementsAre("l4", "l4"));
  EXPECT_THAT(Aliases({DeviceOf("NVIDIA L4", "0123456"), DeviceOf("NVIDIA L4", "6543210")}),
              ElementsAre("l4-0123", "l4-6543"));
}

}  // namespace
}  // namespace attune::catalog
