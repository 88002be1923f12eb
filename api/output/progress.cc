#include "api/output/progress.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "api/text.h"

namespace commtune::api {
namespace {

constexpr int kBarColumns = 24;

std::string left_text(std::optional<Seconds> left) {
  if (!left) return {};
  const auto seconds = static_cast<long>(std::ceil(left->count()));
  return fmt::format(" {}:{:02} left", seconds / 60, seconds % 60);
}

/// The first `most` code points.
std::string_view shortened(std::string_view text, std::size_t most) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xC0U) != 0x80U && count++ == most) return text.substr(0, i);
  }
  return text;
}

}  // namespace

Progress::Progress(ProgressOptions options, std::function<void(std::string_view)> write)
    : options_(std::move(options)), write_(std::move(write)), begin_(options_.now()) {}

Progress::~Progress() {
  try {
    clear();
  } catch (...) {  // a terminal that went away is no reason to end the program
    drawn_ = false;
  }
}

void Progress::show(std::string_view what, double fraction, std::optional<Seconds> left) {
  if (!options_.enabled) return;
  const auto now = options_.now();
  if (now - begin_ < options_.quiet) return;
  const Seconds interval = options_.terminal ? options_.redraw_interval : options_.line_interval;
  if (shown_ && now - *shown_ < interval) return;
  shown_ = now;
  const double within = std::clamp(fraction, 0.0, 1.0);
  if (options_.json) {
    const nlohmann::json document{{"progress", within}, {"what", what}};
    write_(document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n");
  } else if (options_.terminal) {
    write_(bar(what, within, left));
    drawn_ = true;
  } else {
    write_(fmt::format("{:3.0f} %{}  {}\n", 100 * within, left_text(left), what));
  }
}

void Progress::clear() {
  if (!drawn_) return;
  drawn_ = false;
  write_("\r\x1b[K");
}

std::string Progress::bar(std::string_view what, double fraction, std::optional<Seconds> left) const {
  const int full = static_cast<int>(std::lround(fraction * kBarColumns));
  std::string line = fmt::format("[{:#<{}}{:.<{}}] {:3.0f} %{}  ", "", full, "", kBarColumns - full,
                                 100 * fraction, left_text(left));
  const auto room = static_cast<std::size_t>(std::max(0, options_.columns - 1)) -
                    std::min(columns(line), static_cast<std::size_t>(std::max(0, options_.columns - 1)));
  line += shortened(what, room);
  return "\r\x1b[K" + line;
}

}  // namespace commtune::api
