#pragma once
// Small helpers for what people type and read.

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace commtune::api {

/// Fewest insertions, deletions, substitutions and swaps of neighbours that turn one text into the other
/// (optimal string alignment). O(|a| |b|).
int edit_distance(std::string_view a, std::string_view b);

/// " (did you mean \"resnet50\"?)" for the known word closest to what was typed, or "" when none is close
/// or begins so (letters of either case and - _ . are taken as equal).
std::string did_you_mean(std::string_view typed, std::span<const std::string_view> known);
std::string did_you_mean(std::string_view typed, std::span<const std::string> known);

/// Columns that the text takes on a terminal: its code points, all counted as one column wide.
std::size_t columns(std::string_view utf8);

}  // namespace commtune::api
