#pragma once
// A program in the place of mpirun whose ranks run nothing: they say what a test wrote down for them.

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/wire/events.h"
#include "executor/session/report.h"

namespace commtune::api {

/// What a rank 0 says, line by line.
inline std::string lines_of(const std::vector<LaunchReport>& reports) {
  std::string lines;
  for (const LaunchReport& report : reports) lines += to_line(report) + "\n";
  return lines;
}

inline Found report_of(std::vector<double> seconds, std::size_t plan = 0) {
  RunReport report;
  report.median_seconds = seconds[seconds.size() / 2];
  report.iteration_seconds = std::move(seconds);
  return Found{"report", {{"plan", plan}, {"report", commtune::to_json(report)}}};
}

/// A shell script. Tests may use a shell, the product does not.
class MadeRanks {
 public:
  explicit MadeRanks(std::filesystem::path folder) : folder_(std::move(folder)) {
    // Of the made-up lab's hosts.
    const nlohmann::json facts{{"host.n1.cpu", "made up"}, {"host.n2.cpu", "made up"}};
    write("first", lines_of({Started{"test", {"n1", "n1", "n2", "n2"}}, Found{"facts", {{"facts", facts}}}}));
    write("last", lines_of({Finished{nlohmann::json::object()}}));
    script("");
  }

  std::string program() const { return folder_ / "mpirun"; }
  std::string file(const std::string& name) const { return folder_ / name; }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
  }

  /// In a session: what they do for a plan whose line has the text; `otherwise` for all others.
  void for_plans(const std::string& text, const std::string& then, const std::string& otherwise) const {
    script("cat '" + file("first") + "'\nwhile IFS= read -r line; do echo \"$line\" >> '" + file("lines") +
           "'\n  case \"$line\" in\n  *'\"order\":\"end\"'*) cat '" + file("last") + "'; exit 0;;\n  *'" +
           text + "'*) " + then + ";;\n  *) " + otherwise + ";;\n  esac\ndone\n");
  }
  /// Of the n-th start, from 1: what they do after the order.
  void for_start(int n, const std::string& then) {
    starts_ += "  " + std::to_string(n) + ") " + then + ";;\n";
    script("case $(wc -l < '" + file("starts") + "') in\n" + starts_ + "esac\n");
  }

  /// What mpirun was started with, a line a start.
  std::vector<std::string> starts() const { return lines("starts"); }
  /// The order of each start.
  std::vector<nlohmann::json> orders() const {
    std::vector<nlohmann::json> orders;
    for (const std::string& line : lines("orders")) orders.push_back(nlohmann::json::parse(line));
    return orders;
  }
  /// What followed the orders.
  std::vector<std::string> told() const { return lines("lines"); }

 private:
  void script(const std::string& text) const {
    const std::filesystem::path program = folder_ / "next";  // a shell may be reading the one before
    std::ofstream(program) << "#!/bin/sh\necho \"$*\" >> '" << file("starts")
                           << "'\nIFS= read -r order\necho \"$order\" >> '" << file("orders") << "'\n"
                           << text;
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
    std::filesystem::rename(program, folder_ / "mpirun");
  }
  std::vector<std::string> lines(const std::string& name) const {
    std::ifstream in(folder_ / name);
    std::vector<std::string> all;
    for (std::string line; std::getline(in, line);) all.push_back(line);
    return all;
  }

  const std::filesystem::path folder_;
  std::string starts_;  // cases of the script
};

}  // namespace commtune::api
