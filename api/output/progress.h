#pragma once
// How far a long piece of work is: one line that is redrawn on a terminal, now and then a line elsewhere, and
// nothing at all for work that is done within two seconds.

#include <chrono>
#include <cstdio>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "perfmodel/base/units.h"

namespace commtune::api {

struct ProgressOptions {
  bool enabled = true;
  bool terminal = false;        ///< redraw one line; false: whole lines
  bool json = false;            ///< whole lines for a program: {"progress": 0.2, "what": "..."}
  int columns = 80;             ///< of the terminal
  Seconds quiet{2.0};           ///< nothing is shown before
  Seconds line_interval{10.0};  ///< between whole lines
  Seconds redraw_interval{0.1};
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

/// One piece of work's progress. One thread.
class Progress {
 public:
  /// write  gets text for standard error as it is
  Progress(ProgressOptions options, std::function<void(std::string_view)> write);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  /// what      what is going on: "all-reduce ring, 1.0 MiB"
  /// fraction  0 to 1
  void show(std::string_view what, double fraction, std::optional<Seconds> left = {});

  /// Takes the bar away, so that something else can be printed.
  void clear();

 private:
  std::string bar(std::string_view what, double fraction, std::optional<Seconds> left) const;

  const ProgressOptions options_;
  const std::function<void(std::string_view)> write_;
  const std::chrono::steady_clock::time_point begin_;
  std::optional<std::chrono::steady_clock::time_point> shown_;
  bool drawn_ = false;
};

}  // namespace commtune::api
