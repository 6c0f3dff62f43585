/** Finds which lines of two texts differ: the algorithm of Myers in linear space, bounded so that hostile texts cannot stall it. */

/** Lines `from` to `to` (excluded) of the old text are replaced by lines `newFrom` to `newTo` of the new one. */
export type Edit = { readonly from: number; readonly to: number; readonly newFrom: number; readonly newTo: number }

/**
 * A search that needs more steps than this settles for the furthest point it has reached: the edits are then still correct, but perhaps
 * not the fewest.
 */
const mostSteps = 256

type Box = { readonly from: number; readonly to: number; readonly newFrom: number; readonly newTo: number }

/** Returns the edits in order; two edits never touch. Equal lines are equal strings. */
export function editsBetween(before: readonly string[], after: readonly string[]): readonly Edit[] {
  const { numbers, newNumbers, common } = numbered(before, after)
  const removed = markedUnless(numbers, common)
  const added = markedUnless(newNumbers, common)
  // A line that only one side has is changed in any case, so the search is about the others.
  const [kept, newKept] = [positionsOf(removed, 0), positionsOf(added, 0)]
  const search = createSearch(
    kept.map((at) => numbers[at] ?? 0),
    newKept.map((at) => newNumbers[at] ?? 0),
  )
  for (const { from, to, newFrom, newTo } of search()) {
    for (let at = from; at < to; at++) removed[kept[at] ?? 0] = 1
    for (let at = newFrom; at < newTo; at++) added[newKept[at] ?? 0] = 1
  }
  return groupsOf(removed, added)
}

/** Gives equal lines equal numbers; `common` says by number whether both sides have the line. */
function numbered(before: readonly string[], after: readonly string[]) {
  const known = new Map<string, number>()
  const numberOf = (line: string) => {
    const found = known.get(line)
    if (found !== undefined) return found
    known.set(line, known.size)
    return known.size - 1
  }
  const numbers = Int32Array.from(before, numberOf)
  const oldLines = known.size
  const newNumbers = Int32Array.from(after, numberOf)
  const common = new Uint8Array(known.size)
  for (const number of newNumbers) if (number < oldLines) common[number] = 1
  return { numbers, newNumbers, common }
}

function markedUnless(numbers: Int32Array, common: Uint8Array): Uint8Array {
  return Uint8Array.from(numbers, (number) => (common[number] === 1 ? 0 : 1))
}

function positionsOf(marks: Uint8Array, mark: 0 | 1): Int32Array {
  const positions = new Int32Array(marks.length)
  let count = 0
  for (let at = 0; at < marks.length; at++) if (marks[at] === mark) positions[count++] = at
  return positions.subarray(0, count)
}

/** Joins marked lines to edits. Unmarked lines of the two sides correspond in order. */
function groupsOf(removed: Uint8Array, added: Uint8Array): readonly Edit[] {
  const edits: Edit[] = []
  let [at, newAt] = [0, 0]
  while (at < removed.length || newAt < added.length) {
    const [from, newFrom] = [at, newAt]
    while (removed[at] === 1) at++
    while (added[newAt] === 1) newAt++
    if (at > from || newAt > newFrom) edits.push({ from, to: at, newFrom, newTo: newAt })
    at++
    newAt++
  }
  return edits
}

/** Yields boxes in which every line differs. */
function createSearch(a: Int32Array, b: Int32Array): () => Generator<Box> {
  const split = createSplit(a, b)
  return function* search() {
    const open: Box[] = [{ from: 0, to: a.length, newFrom: 0, newTo: b.length }]
    for (let box = open.pop(); box !== undefined; box = open.pop()) {
      const { from, to, newFrom, newTo } = trimmed(a, b, box)
      if (from === to || newFrom === newTo) {
        if (from < to || newFrom < newTo) yield { from, to, newFrom, newTo }
        continue
      }
      const [x, y] = split({ from, to, newFrom, newTo })
      open.push({ from, to: x, newFrom, newTo: y }, { from: x, to, newFrom: y, newTo })
    }
  }
}

function trimmed(a: Int32Array, b: Int32Array, box: Box): Box {
  let { from, to, newFrom, newTo } = box
  while (from < to && newFrom < newTo && a[from] === b[newFrom]) {
    from++
    newFrom++
  }
  while (from < to && newFrom < newTo && a[to - 1] === b[newTo - 1]) {
    to--
    newTo--
  }
  return { from, to, newFrom, newTo }
}

/** Returns a function that finds a point on a shortest path through a box, by searching from both of its corners at once. */
function createSplit(a: Int32Array, b: Int32Array): (box: Box) => readonly [number, number] {
  const zero = b.length + 1
  const forward = new Int32Array(a.length + b.length + 3)
  const backward = new Int32Array(a.length + b.length + 3)
  const never = a.length + b.length + 1

  return ({ from, to, newFrom, newTo }) => {
    const [lowest, highest] = [from - newTo, to - newFrom]
    const [first, last] = [from - newFrom, to - newTo]
    const meetsForward = ((first - last) & 1) !== 0
    let [low, high, backLow, backHigh] = [first, first, last, last]
    forward[zero + first] = from
    backward[zero + last] = to
    for (let steps = 1; ; steps++) {
      if (low > lowest) forward[zero + --low - 1] = -1
      else low++
      if (high < highest) forward[zero + ++high + 1] = -1
      else high--
      for (let d = high; d >= low; d -= 2) {
        const [left = 0, right = 0] = [forward[zero + d - 1], forward[zero + d + 1]]
        let x = left >= right ? left + 1 : right
        while (x < to && x - d < newTo && a[x] === b[x - d]) x++
        forward[zero + d] = x
        if (meetsForward && backLow <= d && d <= backHigh && (backward[zero + d] ?? 0) <= x) return [x, x - d]
      }
      if (backLow > lowest) backward[zero + --backLow - 1] = never
      else backLow++
      if (backHigh < highest) backward[zero + ++backHigh + 1] = never
      else backHigh--
      for (let d = backHigh; d >= backLow; d -= 2) {
        const [left = 0, right = 0] = [backward[zero + d - 1], backward[zero + d + 1]]
        let x = left < right ? left : right - 1
        while (x > from && x - d > newFrom && a[x - 1] === b[x - d - 1]) x--
        backward[zero + d] = x
        if (!meetsForward && low <= d && d <= high && x <= (forward[zero + d] ?? 0)) return [x, x - d]
      }
      if (steps >= mostSteps) return furthest({ from, to, newFrom, newTo }, low, high)
    }
  }

  function furthest({ from, to, newFrom, newTo }: Box, low: number, high: number): readonly [number, number] {
    let best: readonly [number, number] = [from, newFrom]
    for (let d = low; d <= high; d += 2) {
      const x = Math.min(forward[zero + d] ?? 0, to)
      const y = Math.min(x - d, newTo)
      if (y >= newFrom && y + d >= from && y + d + y > best[0] + best[1]) best = [y + d, y]
    }
    return best
  }
}
