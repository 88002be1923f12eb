#include "api/output/table.h"

#include <algorithm>
#include <cassert>

#include "api/text.h"

namespace commtune::api {
namespace {

constexpr std::string_view kGap = "  ";

void append_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

}  // namespace

void Table::add(std::vector<std::string> cells, bool marked) {
  assert(cells.size() == columns_.size());
  rows_.push_back({std::move(cells), marked});
}

std::string Table::text() const {
  std::vector<std::size_t> widths;
  for (std::size_t i = 0; i < columns_.size(); ++i) {
    std::size_t width = columns(columns_[i].title);
    for (const Row& row : rows_) width = std::max(width, columns(row.cells[i]));
    widths.push_back(width);
  }
  const auto pad = [&](const std::string& cell, std::size_t i) {
    const std::string blanks(widths[i] - columns(cell), ' ');
    return columns_[i].align == Align::kLeft ? cell + blanks : blanks + cell;
  };
  const bool any_marked = std::any_of(rows_.begin(), rows_.end(), [](const Row& row) { return row.marked; });
  std::string out;
  std::string line = any_marked ? "  " : "";
  for (std::size_t i = 0; i < columns_.size(); ++i)
    line.append(i ? kGap : "").append(pad(columns_[i].title, i));
  append_line(out, line);
  for (const Row& row : rows_) {
    line = any_marked ? (row.marked ? "> " : "  ") : "";
    for (std::size_t i = 0; i < columns_.size(); ++i) line.append(i ? kGap : "").append(pad(row.cells[i], i));
    append_line(out, line);
  }
  return out;
}

std::string time_or_dash(Seconds time) { return time.count() > 0 ? format_time(time) : "-"; }

}  // namespace commtune::api
