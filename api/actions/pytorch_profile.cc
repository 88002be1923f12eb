#include "api/actions/pytorch_profile.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "api/launch/process.h"
#include "perfmodel/base/error.h"
#include "perfmodel/base/json_reader.h"

namespace commtune::api {
namespace {

constexpr const char* kPython = "python3";

std::vector<std::string> command_of(const ProfileRequest& request) {
  std::vector<std::string> argv{kPython,
                                "-m",
                                "commtune.torch.profile",
                                request.pytorch,
                                "--device",
                                request.device,
                                "--batch",
                                std::to_string(std::max(1, request.batch)),
                                "--budget",
                                fmt::format("{}", request.budget.count())};
  if (request.threads > 0) {
    argv.emplace_back("--threads");
    argv.push_back(std::to_string(request.threads));
  }
  return argv;
}

/// Python says that it does not have PyTorch, or the package of api/python.
bool is_missing_module(std::string_view line) {
  return line.find("No module named 'torch'") != std::string_view::npos ||
         line.find("No module named 'commtune") != std::string_view::npos;
}

[[noreturn]] void report_failure(const ProfileRequest& request, const ProcessEnd& end,
                                 const std::string& last) {
  if (end.cancelled) throw Error(ErrorCode::kInterrupted, "interrupted; no profile was made");
  if (is_missing_module(last))
    throw Error(ErrorCode::kUnavailable,
                fmt::format("--pytorch needs a {} with PyTorch and the package of api/python: activate the "
                            "environment that trains the model, and `pip install ./api/python` there ({})",
                            kPython, last));
  if (last.starts_with(request.pytorch)) throw Error(ErrorCode::kBadInput, last);
  throw Error(ErrorCode::kBadInput,
              fmt::format("{}: {}", request.pytorch,
                          last.empty() ? fmt::format("{} ended without a word", kPython) : last));
}

}  // namespace

Profile profile_of_program(Context& context, const ProfileRequest& request) {
  std::string output, last;
  ProcessHooks hooks;
  hooks.on_output = [&](std::string_view line) { output.append(line).append("\n"); };
  hooks.on_error = [&](std::string_view line) {
    if (!line.empty()) last = line;
  };
  ProcessOptions options;
  options.argv = command_of(request);
  const ProcessEnd end = run_process(options, hooks, context.cancellation);
  if (end.cancelled || end.signal != 0 || end.status != 0) report_failure(request, end, last);
  return profile_from_json(parse_json(output, request.pytorch));
}

}  // namespace commtune::api
