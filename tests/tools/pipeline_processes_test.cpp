// torchscript-cli pipeline as several processes. One is killed.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <thread>

#include "serialization/npy.h"
#include "serialization/torch_save.h"
#include "tests/free_port.h"
#include "tests/tools/cli_testing.h"

namespace wick::pipeline_processes_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace testing_cli;
using testing_ports::freePort;

const std::string kProgram = "tools/torchscript-cli";
// About a millisecond an item, in several filters.
const char* const kSlow = R"(
def main(rows: Tensor) -> Tensor:
    x = rows.squeeze(0)
    a = torch.tanh(x)
    for i in range(10):
        a = torch.tanh(a @ a) + x
    b = torch.relu(a)
    for i in range(10):
        b = torch.tanh(b @ b) + x
    c = torch.sigmoid(b)
    for i in range(10):
        c = torch.tanh(c @ c) - b
    return c
)";
constexpr int64_t kItems = 600;

class PipelineProcessesTest : public testing::Test {
 protected:
  void SetUp() override {
    script_ = write("slow.py", kSlow);
    data_ = temporary("rows.npy");
    kept_ = temporary("kept");
    results_ = temporary("results.pt");
    for (const std::string& path : {kept_, results_}) std::filesystem::remove(path);
    // Made beforehand, so that nothing is measured.
    plan_ = write("plan.json", R"({"stages": [{"filters": ["tanh", "loop"]},
                                            {"filters": ["relu", "loop_1"]},
                                            {"filters": ["sigmoid", "loop_2"]}]})");
    Tensor rows = Tensor::empty({kItems, 64, 64}, DType::Float);
    for (int64_t i = 0; i < rows.numel(); ++i) {
      rows.data<float>()[i] = static_cast<float>(i % 997) / 997 - 0.5f;
    }
    saveNpy(rows, data_);
  }
  std::string commandLine() const {
    return kProgram + " pipeline " + script_ + " --run " + data_ +
           (kept_.empty() ? "" : " --keep " + kept_) + " --output " + results_ + " --plan " +
           plan_ + " --json";
  }
  // A shell that becomes the command, whose output goes to files of that name.
  pid_t start(const std::string& line, const std::string& name) const {
    const std::string whole =
        "exec " + line + " >" + temporary(name + ".out") + " 2>" + temporary(name + ".err");
    const pid_t child = fork();
    if (child != 0) return child;
    execl("/bin/sh", "sh", "-c", whole.c_str(), nullptr);
    _exit(127);
  }
  std::vector<pid_t> startThree() const {
    const std::string common =
        "env -u OMPI_COMM_WORLD_SIZE WORLD_SIZE=3 MASTER_PORT=" + std::to_string(freePort());
    std::vector<pid_t> children;
    for (int rank = 0; rank < 3; ++rank) {
      const std::string number = std::to_string(rank);
      children.push_back(start(common + " RANK=" + number + " " + commandLine(), "rank" + number));
    }
    return children;
  }
  // Until that many bytes are kept, or the process has ended.
  void awaitKept(uint64_t bytes, pid_t child) const {
    for (;;) {
      std::error_code none;
      const uint64_t size = std::filesystem::file_size(kept_, none);
      if (!none && size >= bytes) return;
      siginfo_t info{};
      waitid(P_PID, static_cast<id_t>(child), &info, WEXITED | WNOHANG | WNOWAIT);
      ASSERT_EQ(info.si_pid, 0) << readText(temporary("rank0.err"));
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  static int codeOf(pid_t child) {
    int status = 0;
    EXPECT_EQ(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  // All results are those of one process.
  void expectResults() const {
    const std::string alone = temporary("alone.pt");
    const Outcome o =
        cli({"pipeline", script_, "--run", data_, "--plan", plan_, "--output", alone});
    ASSERT_EQ(o.code, 0) << o.err;
    EXPECT_EQ(readText(results_), readText(alone));
    EXPECT_EQ(loadValue(results_).elements().size(), static_cast<size_t>(kItems));
  }

  std::string script_, data_, kept_, results_, plan_;
};

constexpr uint64_t kSomeItems = 10 * 64 * 64 * 4;

TEST_F(PipelineProcessesTest, RandomNumbersAreThoseOfOneProcess) {
  kept_.clear();
  plan_ = temporary("random.json");
  std::filesystem::remove(plan_);
  script_ = write("random.py", R"(
def main(rows: Tensor) -> Tensor:
    x = rows.squeeze(0)
    y = torch.tanh(x @ x)
    z = (y @ x) + torch.rand(1)
    return torch.sigmoid(z @ y)
)");
  for (const pid_t child : startThree()) EXPECT_EQ(codeOf(child), 0);
  expectResults();
}

TEST_F(PipelineProcessesTest, AKilledProcessIsNamedAndARestartGoesOn) {
  const std::vector<pid_t> children = startThree();
  awaitKept(kSomeItems, children[0]);
  kill(children[1], SIGKILL);
  for (int rank = 0; rank < 3; ++rank) {
    EXPECT_EQ(codeOf(children[static_cast<size_t>(rank)]), rank == 1 ? 128 + SIGKILL : 1);
    if (rank == 1) continue;
    EXPECT_THAT(readText(temporary("rank" + std::to_string(rank) + ".err")),
                HasSubstr("process 1 is gone"));
  }
  EXPECT_FALSE(std::filesystem::exists(results_));
  // Once more, to the end.
  for (const pid_t child : startThree()) EXPECT_EQ(codeOf(child), 0);
  const std::string row = readText(temporary("rank0.out"));
  EXPECT_THAT(row, AllOf(HasSubstr("\"processes\":3"), HasSubstr("\"kept\":"))) << row;
  expectResults();
  // Nothing is left to do.
  const Outcome o =
      cli({"pipeline", script_, "--run", data_, "--keep", kept_, "--plan", plan_, "--json"});
  EXPECT_EQ(o.code, 0) << o.err;
  EXPECT_THAT(o.out, AllOf(HasSubstr("\"items\":0"), HasSubstr("\"kept\":600")));
  const Outcome other =
      cli({"pipeline", script_, "--input", "1x64x64xf32", "--items", "3", "--keep", kept_});
  EXPECT_EQ(other.code, 1);
  EXPECT_THAT(other.err, HasSubstr("its items were made with another --run"));
}

TEST_F(PipelineProcessesTest, TheFirstProcessIsNamedToo) {
  const std::vector<pid_t> children = startThree();
  awaitKept(kSomeItems, children[0]);
  kill(children[0], SIGKILL);
  EXPECT_EQ(codeOf(children[0]), 128 + SIGKILL);
  for (int rank = 1; rank < 3; ++rank) {
    EXPECT_EQ(codeOf(children[static_cast<size_t>(rank)]), 1);
    EXPECT_THAT(readText(temporary("rank" + std::to_string(rank) + ".err")),
                HasSubstr("process 0 is gone"));
  }
}

TEST_F(PipelineProcessesTest, UnderMpirun) {
  if (std::system("mpirun --version >/dev/null 2>&1") != 0) GTEST_SKIP() << "there is no mpirun";
  const std::string folder = testing::TempDir();
  const std::string mpirun =
      "env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 "
      "OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_plm_rsh_agent= mpirun -n 3 sh -c 'echo $$ >" +
      temporary("pid") + "$OMPI_COMM_WORLD_RANK; exec " + commandLine() + "'";
  const pid_t first = start(mpirun, "mpirun");
  awaitKept(kSomeItems, first);
  kill(std::stoi(readText(temporary("pid1"))), SIGKILL);
  EXPECT_NE(codeOf(first), 0);
  EXPECT_THAT(readText(temporary("mpirun.out")) + readText(temporary("mpirun.err")),
              AllOf(HasSubstr("rank 1"), HasSubstr("signal 9")));
  EXPECT_EQ(codeOf(start(mpirun, "mpirun")), 0) << readText(temporary("mpirun.err"));
  EXPECT_THAT(readText(temporary("mpirun.out")), HasSubstr("\"kept\":"));
  expectResults();
}

TEST_F(PipelineProcessesTest, WhatSeveralProcessesCannotDo) {
  const std::string common =
      "env -u OMPI_COMM_WORLD_SIZE WORLD_SIZE=2 MASTER_PORT=" + std::to_string(freePort()) +
      " RANK=";
  const std::string line =
      " " + kProgram + " pipeline " + script_ + " --run " + data_ + " --stages 1";
  const pid_t one = start(common + "1" + line, "rank1");
  EXPECT_EQ(codeOf(start(common + "0" + line, "rank0")), 1);
  EXPECT_EQ(codeOf(one), 1);
  EXPECT_THAT(readText(temporary("rank0.err")), HasSubstr("expected at least 2 stages"));
  EXPECT_THAT(readText(temporary("rank1.err")), HasSubstr("process 0: expected at least 2 stages"));
  const std::string looks = " " + kProgram + " pipeline " + script_ + " --stream -";
  const pid_t other = start(common + "1" + looks, "rank1");
  EXPECT_EQ(codeOf(start(common + "0" + looks, "rank0")), 2);
  EXPECT_EQ(codeOf(other), 2);
  for (const char* rank : {"rank0.err", "rank1.err"}) {
    EXPECT_THAT(readText(temporary(rank)),
                HasSubstr("several processes: expected items, neither --chunk nor --stream alone"));
  }
  const Outcome endless = cli({"pipeline", script_, "--input", "1x64x64xf32", "--keep", kept_});
  EXPECT_THAT(endless.err, HasSubstr("--keep: expected --run or --items"));
}

}  // namespace
}  // namespace wick::pipeline_processes_test
