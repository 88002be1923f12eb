#pragma once
// The registry of methods. A method is a constructor of plans: adding one touches its own file under methods/
// and one line of registry.cc. MODEL.md section 2 lists them.

#include <span>
#include <string>
#include <string_view>

#include "tuner/planning.h"

namespace commtune::tuner {

/// How much machinery a method asks of whoever runs its plan; the tie-breaker where no plan clearly wins.
enum class Effort {
  kDefault,   ///< what a framework does when left alone: after the backward pass, tensor by tensor, buckets
  kTuned,     ///< needs fusion groups or sizes computed for this job
  kReordered  ///< needs priorities, several messages in flight, or a barrier per layer
};

/// Where a constructor comes from.
enum class MethodSource {
  kPublished,     ///< its authors' text or code says all that the constructor does
  kReconstructed  ///< parts are reconstructed from an abstract: the title says "after"
};

struct Method {
  std::string_view name;   ///< "wfbp-a2a": in plans, the store and flags
  std::string_view title;  ///< "WFBP-A2A": in tables
  std::string_view source;
  std::string_view does;  ///< one line: what the plan is
  MethodSource origin;
  Architecture architecture;
  /// kHashed: its system gives each piece whole to one server, and the method takes roads whose servers do.
  Assignment servers;
  Effort effort;
  /// Goes up when the constructor's plans change for the same job. Stored with rankings.
  int version;
  /// The method's plan on one road of its architecture; satisfies check(). Pure.
  Plan (*build)(const Planning& job, const RoadOption& option);
  /// Where `build` simulates many settings: the plan with fixed ones, by which roads are told that are not
  /// worth it.
  Plan (*untuned)(const Planning& job, const RoadOption& option) = nullptr;
};

/// All methods, in the order of the literature. The tuner's own joint search is not among them: it starts
/// from their plans (search.h).
std::span<const Method> methods();

/// How a ranking over several transports names a method's plan over one of them: "wfbp-a2a@mpi".
std::string method_over(std::string_view method, std::string_view transport);
/// The method's own name: "wfbp-a2a" for both that and "wfbp-a2a@mpi".
std::string_view base_method(std::string_view name);

/// By either name; nullptr when there is no such method.
const Method* find_method(std::string_view name);

}  // namespace commtune::tuner
