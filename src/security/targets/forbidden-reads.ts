/** Recognises files that no tool and no command may read, by the patterns of the operator. */

export type ReadQuestion = {
  /** Patterns such as those of .gitignore: a later one overrides an earlier one, and "!" makes an exception. */
  readonly patterns: readonly string[]
  readonly workspace: string
  readonly home: string
}

/** @returns a function from an absolute, normalised path to the pattern that forbids reading it */
export function forbiddenReads({ patterns, workspace, home }: ReadQuestion): (path: string) => string | undefined {
  const sources = patterns.map((pattern) => source(globOf(pattern, home)))
  const forbidding = sources.filter((_, at) => !isException(patterns[at] ?? ''))
  if (forbidding.length === 0) return () => undefined
  // Nearly all paths match nothing: one expression tells that, at a tenth of the cost of one for each pattern.
  const any = expression(`(?:${forbidding.join('|')})`)
  const state: { each?: readonly RegExp[] } = {}
  return (path) => {
    const relative = path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : undefined
    const matches = (regex: RegExp) => regex.test(path) || (relative !== undefined && regex.test(relative))
    if (!matches(any)) return undefined
    state.each ??= sources.map(expression)
    const found = patterns[state.each.findLastIndex(matches)]
    return found === undefined || isException(found) ? undefined : found
  }
}

function isException(pattern: string): boolean {
  return pattern.startsWith('!')
}

/** Letters of both cases match, because some file systems open either. */
function expression(text: string): RegExp {
  return new RegExp(`^${text}$`, 'iu')
}

/** A pattern without a slash means a name in any folder. */
function globOf(pattern: string, home: string): string {
  const bare = isException(pattern) ? pattern.slice(1) : pattern
  return bare.startsWith('~/') ? `${home}/${bare.slice(2)}` : bare.includes('/') ? bare.replace(/^\.\//, '') : `**/${bare}`
}

function source(glob: string): string {
  return glob.replace(/\*\*\/|\*\*|[*?]|[^\w/*?-]/gu, (piece) => {
    if (piece === '**/') return '(?:.*/)?'
    if (piece === '**') return '.*'
    if (piece === '*') return '[^/]*'
    return piece === '?' ? '[^/]' : `\\u{${piece.codePointAt(0)?.toString(16)}}`
  })
}
