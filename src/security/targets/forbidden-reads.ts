/** Recognises files that no tool and no command may read, by the patterns of the operator. */

export type ReadQuestion = {
  /** Patterns such as those of .gitignore: a later one overrides an earlier one, and "!" makes an exception. */
  readonly patterns: readonly string[]
  readonly workspace: string
  readonly home: string
}

type Compiled = { readonly pattern: string; readonly allows: boolean; readonly regex: RegExp }

/** @returns a function from an absolute, normalised path to the pattern that forbids reading it */
export function forbiddenReads({ patterns, workspace, home }: ReadQuestion): (path: string) => string | undefined {
  const all = patterns.map((pattern) => compile(pattern, home))
  return (path) => {
    const relative = path.startsWith(`${workspace}/`) ? path.slice(workspace.length + 1) : undefined
    const found = all.findLast(({ regex }) => regex.test(path) || (relative !== undefined && regex.test(relative)))
    return found === undefined || found.allows ? undefined : found.pattern
  }
}

/** A pattern without a slash means a name in any folder; letters of both cases match, because some file systems open either. */
function compile(pattern: string, home: string): Compiled {
  const allows = pattern.startsWith('!')
  const bare = allows ? pattern.slice(1) : pattern
  const whole = bare.startsWith('~/') ? `${home}/${bare.slice(2)}` : bare.includes('/') ? bare.replace(/^\.\//, '') : `**/${bare}`
  return { pattern, allows, regex: new RegExp(`^${source(whole)}$`, 'iu') }
}

function source(glob: string): string {
  return glob.replace(/\*\*\/|\*\*|[*?]|[^\w/*?-]/gu, (piece) => {
    if (piece === '**/') return '(?:.*/)?'
    if (piece === '**') return '.*'
    if (piece === '*') return '[^/]*'
    return piece === '?' ? '[^/]' : `\\u{${piece.codePointAt(0)?.toString(16)}}`
  })
}
