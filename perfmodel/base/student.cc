#include "perfmodel/base/student.h"

#include <cassert>
#include <cmath>
#include <numbers>

namespace commtune {

namespace {

/// Probability of |t| < sqrt(degrees) * tan(angle).
double inside(int degrees, double angle) {
  const double sine = std::sin(angle), cosine = std::cos(angle);
  const bool odd = degrees % 2 == 1;
  double sum = 0, term = odd ? cosine : 1;
  for (int k = odd ? 2 : 1; k < degrees; k += 2) {
    sum += term;
    term *= static_cast<double>(k) / (k + 1) * cosine * cosine;
  }
  return odd ? (angle + sine * sum) * 2 / std::numbers::pi : sine * sum;
}

}  // namespace

double student_t(int degrees, double outside) {
  assert(degrees >= 1 && outside > 0 && outside < 1);
  constexpr int kSteps = 60;  // until the halves are as narrow as rounding
  double low = 0, high = std::numbers::pi / 2;
  for (int step = 0; step < kSteps; ++step) {
    const double middle = (low + high) / 2;
    (inside(degrees, middle) < 1 - outside ? low : high) = middle;
  }
  return std::sqrt(degrees) * std::tan(low);
}

}  // namespace commtune
