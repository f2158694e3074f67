#include "server/metrics/process.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

namespace attune::metrics {
namespace {

using prometheus::MetricType;

void Add(Families& families, const char* name, const char* help, MetricType type, double value) {
  auto family = MakeFamily(name, help, type);
  AddValue(family, {}, value);
  families.push_back(std::move(family));
}

// The fields of /proc/self/stat behind the name, from the third of proc(5) on.
std::vector<std::string> Stat() {
  std::ifstream file("/proc/self/stat");
  std::string text((std::istreambuf_iterator<char>(file)), {});
  std::istringstream fields(text.substr(text.rfind(')') + 1));
  return {std::istream_iterator<std::string>(fields), {}};
}

// Seconds since 1970 when the host was booted.
double BootTime() {
  std::ifstream file("/proc/stat");
  for (std::string word; file >> word;) {
    double value = 0;
    if (word == "btime" && file >> value) return value;
  }
  return 0;
}

double OpenDescriptors() {
  DIR* const directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  int count = 0;
  while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.';
  closedir(directory);
  return count - 1;  // but for the one that counts
}

}  // namespace

void CollectProcess(Families& families) {
  const std::vector<std::string> stat = Stat();
  constexpr size_t kUserTime = 14 - 3, kSystemTime = 15 - 3, kThreads = 20 - 3, kStart = 22 - 3, kVirtual = 23 - 3,
                   kResident = 24 - 3;
  if (stat.size() > kResident) {
    const double ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
    const double page = static_cast<double>(sysconf(_SC_PAGESIZE));
    const auto at = [&stat](size_t field) { return std::stod(stat[field]); };
    Add(families, "process_cpu_seconds_total", "CPU time of the daemon, without its workers.", MetricType::Counter,
        (at(kUserTime) + at(kSystemTime)) / ticks);
    Add(families, "process_start_time_seconds", "When the daemon was started.", MetricType::Gauge,
        BootTime() + at(kStart) / ticks);
    Add(families, "process_virtual_memory_bytes", "Address space of the daemon.", MetricType::Gauge, at(kVirtual));
    Add(families, "process_resident_memory_bytes", "Memory of the daemon, without its workers.", MetricType::Gauge,
        at(kResident) * page);
    Add(families, "process_threads", "Threads of the daemon.", MetricType::Gauge, at(kThreads));
  }
  rlimit limit = {};
  getrlimit(RLIMIT_NOFILE, &limit);
  Add(families, "process_open_fds", "Open files and connections.", MetricType::Gauge, OpenDescriptors());
  Add(families, "process_max_fds", "The most of them.", MetricType::Gauge, static_cast<double>(limit.rlim_cur));
}

}  // namespace attune::metrics
