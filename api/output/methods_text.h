#pragma once
// The methods of the literature as tables for people: `tune methods`.

#include <string>

namespace commtune::api {

/// What each method is, and in how many jobs of the sweep it is the best of the literature.
std::string methods_table();

/// Every job of the sweep.
std::string where_best_table();

}  // namespace commtune::api
