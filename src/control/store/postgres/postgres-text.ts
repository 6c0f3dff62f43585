/** Rewrites `?` to `$1`, `$2`, …, once a text. */

/** Filters of lists make many texts; those after the first few hundred are rewritten each time. */
const mostKept = 1_000

export function createTextOf(): (sql: string) => string {
  const kept = new Map<string, string>()
  return (sql) => {
    const known = kept.get(sql)
    if (known !== undefined) return known
    const text = numbered(sql)
    if (kept.size < mostKept) kept.set(sql, text)
    return text
  }
}

/** A `?` between quotes stays. */
function numbered(sql: string): string {
  let count = 0
  return sql.replace(/'(?:[^']|'')*'|\?/g, (found) => {
    if (found !== '?') return found
    count += 1
    return `$${count}`
  })
}
