// Loads a tuner plugin of NCCL's as NCCL does and prints what it decides for which sizes. No GPU and no NCCL
// is needed.

#include <dlfcn.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "api/nccl/communicator_tuner.h"
#include "api/nccl/tuner_interface.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/units.h"

namespace commtune::nccl_tuner {
namespace {

struct Asked {
  std::string plugin, table, collective = "AllReduce", interface;
  std::size_t ranks = 2, nodes = 1;
  std::string first = "1K", last = "64M";
  double factor = 2;
};

/// Of whichever version.
struct Plugin {
  std::string version;
  const char* name = nullptr;
  decltype(TunerV4::init) init_v4 = nullptr;
  StartFunction init = nullptr;
  TuningFunction get_tuning = nullptr;
  Close close = nullptr;
};

void print_log(int level, unsigned long /*about*/, const char* /*file*/, int /*line*/, const char* format,
               ...) {
  if (level > kLogInfo) return;
  std::va_list arguments;
  va_start(arguments, format);
  std::vfprintf(stderr, format, arguments);
  va_end(arguments);
  std::fputc('\n', stderr);
}

template <typename Tuner>
const Tuner* found(void* library, const char* version, const std::string& asked) {
  if (!asked.empty() && asked != version) return nullptr;
  return static_cast<const Tuner*>(dlsym(library, fmt::format("ncclTunerPlugin_{}", version).c_str()));
}

Plugin load(const Asked& asked) {
  void* const library = dlopen(asked.plugin.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw Error(ErrorCode::kNotFound, dlerror());
  for (const char* const version : {"v7", "v6"}) {
    if (const auto* const tuner = found<TunerV6>(library, version, asked.interface))
      return {version, tuner->name, nullptr, tuner->init, tuner->get_tuning, tuner->close};
  }
  if (const auto* const tuner = found<TunerV5>(library, "v5", asked.interface))
    return {"v5", tuner->name, nullptr, tuner->init, tuner->get_tuning, tuner->close};
  if (const auto* const tuner = found<TunerV4>(library, "v4", asked.interface))
    return {"v4", tuner->name, tuner->init, nullptr, tuner->get_tuning, tuner->close};
  throw Error(ErrorCode::kNotFound, fmt::format("{}: no ncclTunerPlugin_{}", asked.plugin,
                                                asked.interface.empty() ? "v4 to v7" : asked.interface));
}

int function_of(const std::string& collective) {
  if (collective == "AllGather") return kAllGather;
  return collective == "ReduceScatter" ? kReduceScatter : kAllReduce;
}

/// "Ring+LL128, 8 channels", or that the choice is NCCL's.
std::string decision(const Plugin& plugin, void* context, int function, Bytes size) {
  constexpr float kUsual = 1;  // microseconds, of all: the plugin's is less
  std::array<float, std::size_t{kAlgorithms} * kProtocols> costs{};
  costs.fill(kUsual);
  int channels = 0;
  const Result result =
      plugin.get_tuning(context, function, size.count, 1, reinterpret_cast<float**>(costs.data()),
                        kAlgorithms, kProtocols, 0, &channels);
  if (result != kSuccess) return fmt::format("error {}: NCCL's own", result);
  for (const auto& [algorithm_name, algorithm] : kNcclAlgorithms) {
    for (const auto& [protocol_name, protocol] : kNcclProtocols) {
      const std::size_t at =
          (static_cast<std::size_t>(algorithm) - 1) * kProtocols + static_cast<std::size_t>(protocol) - 1;
      if (costs[at] >= kUsual) continue;
      return fmt::format("{}+{}{}", algorithm_name, protocol_name,
                         channels > 0 ? fmt::format(", {} channels", channels) : "");
    }
  }
  return "NCCL's own";
}

void print_decisions(const Asked& asked) {
  const Plugin plugin = load(asked);
  fmt::print("{}: {}, interface {}\n", asked.plugin, plugin.name, plugin.version);
  void* context = nullptr;
  std::array<double, 1024> constants{};  // more than any version has
  const Result result =
      plugin.init != nullptr
          ? plugin.init(&context, 1, asked.ranks, asked.nodes, print_log, nullptr, constants.data())
          : plugin.init_v4(asked.ranks, asked.nodes, print_log, &context);
  if (result != kSuccess)
    throw Error(ErrorCode::kUnavailable, fmt::format("{}: init: NCCL's result {}", asked.plugin, result));
  fmt::print("{} of {} ranks on {} nodes\n{:>12}  {}\n", asked.collective, asked.ranks, asked.nodes, "size",
             "decision");
  const Bytes last = parse_size(asked.last);
  for (Bytes size = parse_size(asked.first); size <= last;) {
    fmt::print("{:>12}  {}\n", size.count, decision(plugin, context, function_of(asked.collective), size));
    const auto next = static_cast<std::uint64_t>(static_cast<double>(size.count) * asked.factor);
    size = Bytes{std::max(next, size.count + 1)};
  }
  plugin.close(context);
}

/// Beside this program's folder, as both are built and installed.
std::string own_plugin() {
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  return (program.parent_path().parent_path() / "lib" / "libnccl-tuner-commtune.so").string();
}

int run(int argc, char** argv) {
  CLI::App app(
      "What a tuner plugin of NCCL's decides, by size. Loads it as NCCL does; needs neither GPU nor NCCL.");
  Asked asked;
  asked.plugin = own_plugin();
  app.add_option("--plugin", asked.plugin, "the plugin")->type_name("FILE")->capture_default_str();
  app.add_option("--table", asked.table,
                 fmt::format("the text of {}, as tune export PLAN --to nccl prints it", kTableVariable))
      ->default_str("the variable's")
      ->type_name("TEXT");
  app.add_option("--ranks", asked.ranks, "of the communicator")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--nodes", asked.nodes, "hosts that they are on")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  app.add_option("--collective", asked.collective, "what is asked for")
      ->check(CLI::IsMember({"AllReduce", "ReduceScatter", "AllGather"}))
      ->capture_default_str();
  app.add_option("-b", asked.first, "smallest size")->type_name("SIZE")->capture_default_str();
  app.add_option("-e", asked.last, "largest size")->type_name("SIZE")->capture_default_str();
  app.add_option("-f", asked.factor, "ratio of neighbouring sizes")
      ->check(CLI::Range(1.001, 1e6))
      ->capture_default_str();
  app.add_option("--interface", asked.interface, "version of the plugin's interface")
      ->check(CLI::IsMember({"v4", "v5", "v6", "v7"}))
      ->default_str("the newest that it has");
  CLI11_PARSE(app, argc, argv);
  if (!asked.table.empty()) setenv(kTableVariable, asked.table.c_str(), 1);
  print_decisions(asked);
  return 0;
}

}  // namespace
}  // namespace commtune::nccl_tuner

int main(int argc, char** argv) {
  try {
    return commtune::nccl_tuner::run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "nccl-tuner-decisions: %s\n", error.what());
    return 1;
  }
}
