// The mainloop that converts 8-bit K and V once for the team (KV_CONVERT), beside the products: V(i) during Q K(i)^T,
// and K(i + 1), where it is converted too, during P V(i).
//
// Step i, with K and V the 8-bit tiles and K', V' the 16-bit ones:
//
//   wait for this thread's part of V(i)
//   S = Q K'(i)^T                    beside it: V(i) to V'; then start V(i + 1)
//   barrier                          V'(i) is here, and K'(i) is no longer read
//   softmax
//   wait for this thread's part of K(i + 1)
//   O += P V'(i)                     beside it: K(i + 1) to K'; then start K(i + 2)
//   barrier                          K'(i + 1) is here, and V'(i) is no longer read
//
// K that is not converted is read by all warps: K(i + K_STAGES) is started behind the first barrier, and K(i + 1)
// waited for before the second.
#pragma once

#include "mainloop.cuh"

#if KV_CONVERT
constexpr bool kConvertsKeys = KV_CONVERT == 2;

class ConvertingMainloop : public Mainloop {
 public:
  // As Mainloop's, with the begin of shared memory in the place of the buffers'.
  __device__ ConvertingMainloop(unsigned shared, const Item& item, const TileRange& tiles, unsigned team,
                                unsigned team_thread, KeyBegins* kept, const Arguments& t)
      : Mainloop(shared + kBytesBegin, shared + kBytesBegin + K_STAGES * kBufferBytes, item, tiles, TeamOf(team),
                 team_thread, kept, t),
        wide_(shared + TeamOf(team) * kTeamKeys * WideTile::kRowBytes) {}

  // Groups of copies: Q and K(0), V(0), with another buffer of K K(1).
  __device__ void Start() {
    const int tile = tiles_.end - 1;
    IssueKeyCopy(tile, 0);
    CommitCopies();
    IssueValueCopy(tile, 0);
    CommitCopies();
    if (K_STAGES == 2) {
      IssueKeyCopy(tile - 1, 1);
      CommitCopies();
    }
  }

  // For this thread's copies of Q and K(0); its part of K(0) is then converted.
  __device__ void WaitFirst() {
    WaitCopies<K_STAGES>();
    if (kConvertsKeys) {
      Keys().All();
      IssueKeyCopy(tiles_.end - 2, 0);
      CommitCopies();
    }
  }

  // Once Q and K(0), or K'(0), are there for all. `first_row` is the warp's.
  __device__ void Run(const Queries& queries, const Scale& scale, RowSums& rows, Outputs& o, int first_row,
                      unsigned /*lane*/) {
    int k_buffer = 0;
#pragma unroll 1
    for (int tile = tiles_.end - 1; tile >= tiles_.begin; --tile) {
      WaitCopies<kConvertsKeys ? 1 : K_STAGES - 1>();
      Logits s;
      const KeyLanes keys = KeyAddress(kConvertsKeys ? wide_ : k_stages_, Lane());
      ForgetAddresses();
      Part conversion(v_stages_, wide_ + kWideValues, thread_);
#if KV_CONVERT == 2
      QueryKey(s, queries, keys, rows, conversion);
#else
      QueryKey(s, queries, keys.Plus(k_buffer * kBufferBytes), rows, conversion);
#endif
      conversion.Finish();
      ForgetAddresses();
      IssueValueCopy(tile - 1, 0);
      CommitCopies();
      SyncTeam(team_);
      if (!kConvertsKeys) {
        ForgetAddresses();
        IssueKeyCopy(tile - K_STAGES, k_buffer);
        CommitCopies();
      }
      if (SOFTCAP) Cap(s, scale, t_);
      if (tile >= tiles_.whole_end || (MASK == 2 && tile < tiles_.whole_begin)) {
        Mask(s, first_row, tile * BLOCK_N + team_ * kTeamKeys, Lane(), sequence_, t_);
      }
      RaiseMaxima(s, rows, o, scale);
      const ValueLanes values = ValueAddress(wide_, Lane());
#if KV_CONVERT == 2
      WaitCopies<1>();
      ForgetAddresses();
      Part next = Keys();  // behind the last tile what was there before, which nobody reads
      WeightValue(o, s, rows, values, scale, next);
      next.Finish();
      ForgetAddresses();
      IssueKeyCopy(tile - 2, 0);
      CommitCopies();
#else
      WeightValue(o, s, rows, values, scale);
      WaitCopies<2 * (K_STAGES - 1)>();
      k_buffer = After(k_buffer, K_STAGES);
#endif
      SyncTeam(team_);
    }
  }

 private:
  using Part = Conversion<Copy>;

  // The compiler does not know that a team by itself is 0, and would keep addresses that differ by it.
  __device__ static unsigned TeamOf(unsigned team) { return WARPS_N == 1 ? 0 : team; }

  // Registers are O's and S's: what follows from the thread's number is computed anew.
  __device__ static unsigned Lane() { return Opaque(threadIdx.x) % 32; }
  __device__ void ForgetAddresses() { thread_ = Opaque(threadIdx.x) % kTeamThreads; }

  __device__ Part Keys() const { return Part(k_stages_, wide_ + kWideBegin, thread_); }

  unsigned wide_;  // and the team's keys
};
#endif
