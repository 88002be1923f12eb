#pragma once
// Times a model's layers on this machine, or imports times from a trace, and keeps the profile.

#include <string>

#include "api/actions/context.h"
#include "perfmodel/profile.h"
#include "store/rows.h"

namespace commtune::api {

struct ProfileRequest {
  std::string model;    ///< a shipped profile's name: it lends the tensors
  std::string pytorch;  ///< "FILE:callable", a real model in place of a shipped one; empty: none
  std::string trace;    ///< a file with a trace to import; empty: none
  std::string sizes;    ///< with it: the model that lends names and sizes; empty: the trace has them
  std::string device;   ///< "cpu", "cuda", or of a real model "meta": sizes only
  int gpu = 0;          ///< with "cuda": as the driver counts them
  std::string precision = "fp32";  ///< with "cuda": also "tf32" or "bf16"
  std::string search_path;         ///< with "cuda": as PATH; beside its python3 NVIDIA's libraries may lie
  int batch = 0;                   ///< 0: the shipped profile's, or 1
  int threads = 0;                 ///< 0: all processors
  Seconds budget{60};
  double width = 0.03;
  std::string out;  ///< file to write as well; empty: none
};

struct ProfileOutcome {
  RowId row = 0;
  std::string digest;
  Profile profile;
  Seconds elapsed{};
};

/// throws  Error{kNotFound} for a model whose shapes are not known; Error{kUnavailable} for a device that
///         this build cannot time; Error{kInterrupted} after Ctrl-C; of a real model what
///         profile_of_program() throws, of a trace what read_trace() and profile_from_trace() do
ProfileOutcome profile_model(Context& context, const ProfileRequest& request);

nlohmann::json to_json(const ProfileOutcome& outcome);

}  // namespace commtune::api
