#pragma once
// Of the standard normal distribution.

namespace commtune {

inline constexpr double kNormal95 = 1.959963984540054;   ///< 95 % of its values are nearer to 0
inline constexpr double kNormal90 = 1.6448536269514722;  ///< 90 %
/// Standard deviation of a normal distribution whose absolute values have the median 1.
inline constexpr double kSigmaByMedian = 1.4826;
/// Standard error of a median over that of a mean, of many values.
inline constexpr double kMedianOverMean = 1.2533141373155;

}  // namespace commtune
