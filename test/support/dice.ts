/** Throws dice for tests: the same numbers for the same seed. */

/** @returns numbers from 0 up to `end`, without it */
export function dice(seed: number): (end: number) => number {
  let state = (seed * 2_654_435_761) >>> 0
  return (end) => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    state = Math.imul(state ^ (state >>> 12), 0x297a2d39) >>> 0
    return (state >>> 8) % end
  }
}
