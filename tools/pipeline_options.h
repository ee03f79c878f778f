// What the command line says of a pipeline (torchscript-cli pipeline).
#pragma once

#include <cstdint>
#include <string>

namespace wick::cli {

struct PipelineOptions {
  std::string stages = "auto";  // or a number
  int64_t replicas = 0;         // copies that a stage may have; 0: 1, or any number with "auto"
  std::string plan;             // read when it is there, else written
  std::string overrides;        // what layers become
  std::string cluster;          // machines to predict for
  std::string data;             // items
  std::string stream;           // where the stream graph is written: .txt, .dot, .svg; "-": printed
  std::string picture;          // of the plan: .dot, .svg
  std::string keep;             // results, as they come; a run goes on behind those that are there
  int64_t items = 0;            // of --input, again and again; 0: as many as fit into the duration
  int64_t in_flight = 0;        // 0: as many as queues hold
  int64_t queue = 4;
  int64_t chunk = 0;    // time steps of a piece; 0: the input is no stream over time
  int64_t axis = -1;    // the dimension of the first argument that is time
  bool merge = false;   // linear filters become one where that pays
  bool verify = false;  // compare each result with a call of the model
};

}  // namespace wick::cli
