/** Finds the known word that is most similar to a misspelled one. */

/** Returns the known word that a person most likely meant, or undefined when none is near. */
export function nearest(word: string, known: readonly string[]): string | undefined {
  const target = plainWord(word)
  const begun = target.length < 4 ? [] : known.filter((name) => plainWord(name).startsWith(target))
  if (begun.length === 1) return begun[0]
  const allowed = Math.max(1, Math.floor(target.length / 3))
  const ranked = known.map((name) => ({ name, off: distance(target, plainWord(name)) })).sort((a, b) => a.off - b.off)
  const best = ranked[0]
  return best !== undefined && best.off <= allowed ? best.name : undefined
}

/** Removes differences of case, dashes and camelCase. It truncates long words, because no known word is that long. */
function plainWord(word: string): string {
  return word
    .slice(0, 80)
    .replace(/([a-z0-9])([A-Z])/g, '$1_$2')
    .replaceAll('-', '_')
    .toLowerCase()
}

/** Damerau–Levenshtein (adjacent swaps count one). */
function distance(a: string, b: string): number {
  let before: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const change = (last[j - 1] ?? 0) + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swap = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1] ? (before[j - 2] ?? 0) + 1 : change
      row.push(Math.min(change, swap, (last[j] ?? 0) + 1, (row[j - 1] ?? 0) + 1))
    }
    before = last
    last = row
  }
  return last[b.length] ?? 0
}
