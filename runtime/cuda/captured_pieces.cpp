#include "runtime/cuda/captured_pieces.h"

#include <algorithm>
#include <utility>

#include "runtime/cuda/joint_launches.h"
#include "runtime/cuda/side_work.h"

namespace wick::cuda {

namespace {

// Pieces that are remembered; each new one is compared with all.
constexpr size_t kMostPieces = 48;
constexpr size_t kMostDelayed = 32;
constexpr size_t kMostDelayedBytes = size_t{256} << 10;  // of each

}  // namespace

CapturedPieces::~CapturedPieces() {
  release();
  freeDelayed();
}

void CapturedPieces::drop(Piece& piece) noexcept {
  if (piece.end) driver().destroyEvent(piece.end);
}
void CapturedPieces::release() noexcept {
  for (Piece& p : pieces_) drop(p);
  pieces_.clear();
  if (start_) driver().destroyEvent(std::exchange(start_, nullptr));
}

void CapturedPieces::begin(Stream stream) {
  release();
  if (!branch_ || main_ != stream) branch_ = streamBeside(device_, stream);
  main_ = stream;
  start_ = recordOn(stream);
}

// Lets the captured stream wait for the branch up to this piece.
void CapturedPieces::join(size_t last) {
  check(driver().waitForEvent(main_, pieces_[last].end, 0), "ordering streams");
  for (size_t i = 0; i <= last; ++i) pieces_[i].waits = false;
}
void CapturedPieces::joinAll() {
  for (size_t i = pieces_.size(); i-- > 0;) {
    if (!pieces_[i].waits) continue;
    join(i);
    break;
  }
  release();
}

Stream CapturedPieces::place(std::span<const MemoryRange> reads,
                             std::span<const MemoryRange> writes, bool may_branch) {
  const Stream now = streamForMemory(device_.index());
  if (now != main_) joinAll();
  if (!start_ || now != main_) begin(now);
  if (pieces_.size() >= kMostPieces) {
    joinAll();  // all later ones come behind these
    begin(now);
  }
  const auto mustFollow = [&](const Piece& p) {
    return overlap(p.writes, reads) || overlap(p.writes, writes) || overlap(p.reads, writes);
  };
  // The youngest of each stream that it depends on; none: one behind the last index.
  size_t main_before = pieces_.size(), branch_before = pieces_.size(), last_main = pieces_.size();
  for (size_t i = pieces_.size(); i-- > 0;) {
    size_t& before = pieces_[i].stream == main_ ? main_before : branch_before;
    if (pieces_[i].stream == main_ && last_main == pieces_.size()) last_main = i;
    if (before == pieces_.size() && mustFollow(pieces_[i])) before = i;
  }
  const bool branches = may_branch && last_main < pieces_.size() && main_before != last_main;
  if (branches) {
    const Event event = main_before < pieces_.size() ? pieces_[main_before].end : start_;
    check(driver().waitForEvent(branch_, event, 0), "ordering streams");
  } else if (branch_before < pieces_.size() && pieces_[branch_before].waits) {
    join(branch_before);
  }
  Piece piece{branches ? branch_ : main_, {}, {}};
  piece.reads.assign(reads.begin(), reads.end());
  piece.writes.assign(writes.begin(), writes.end());
  piece.waits = branches;
  pieces_.push_back(std::move(piece));
  return pieces_.back().stream;
}

void CapturedPieces::done() {
  pieces_.back().end = recordOn(pieces_.back().stream);
}

bool CapturedPieces::delayFree(Device device, void* memory, size_t bytes) {
  if (bytes > kMostDelayedBytes || device.index != device_.index() || !start_) return false;
  if (delayed_.size() >= kMostDelayed) {
    device_.allocator().free(reinterpret_cast<Address>(delayed_.front()), main_);
    delayed_.erase(delayed_.begin());
  }
  delayed_.push_back(memory);
  return true;
}
void CapturedPieces::freeDelayed() noexcept {
  for (void* memory : std::exchange(delayed_, {})) {
    device_.allocator().free(reinterpret_cast<Address>(memory), main_);
  }
}

MemoryRange rangeOf(const Tensor& t) {
  int64_t span = 1;
  for (int64_t d = 0; d < t.dim(); ++d) span += (t.size(d) - 1) * t.stride(d);
  const auto first = reinterpret_cast<intptr_t>(t.rawData());
  return {first, first + span * static_cast<int64_t>(t.itemSize())};
}

CapturedPiece::CapturedPiece(std::span<const MemoryRange> reads,
                             std::span<const MemoryRange> writes, bool may_branch)
    : pieces_(Capture::current() ? &Capture::current()->pieces() : nullptr) {
  if (!pieces_) {
    stream_ = currentStream();
    return;
  }
  // Kernels that wait to be launched together come first.
  if (JointLaunches* joint = JointLaunches::current()) joint->flush();
  stream_ = pieces_->place(reads, writes, may_branch);
}

CapturedPiece::~CapturedPiece() {
  if (!pieces_) return;
  try {
    pieces_->done();
  } catch (const std::exception&) {
    // The capture ends with an error then.
  }
}

}  // namespace wick::cuda
