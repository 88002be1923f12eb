#pragma once
// Tables of text for people: columns as wide as they need to be, numbers to the right.

#include <string>
#include <vector>

#include "perfmodel/base/units.h"

namespace commtune::api {

enum class Align { kLeft, kRight };

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::kRight;
  };
  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// As many cells as columns. A marked row is led by '>' where the others have a blank.
  void add(std::vector<std::string> cells, bool marked = false);

  bool empty() const { return rows_.empty(); }

  /// Title line, then a line a row, each ended by a newline; no blanks at line ends.
  std::string text() const;

 private:
  struct Row {
    std::vector<std::string> cells;
    bool marked = false;
  };
  std::vector<Column> columns_;
  std::vector<Row> rows_;
};

std::string time_or_dash(Seconds time);  ///< a cell: "-" for what is not known, which is 0

}  // namespace commtune::api
