/**
 * Matches .gitignore patterns closely enough for a search: order, negation, anchoring, folder-only rules; the caller reads the files.
 */

type Ignore = { readonly glob: Bun.Glob; readonly negated: boolean; readonly folderOnly: boolean }

export function parseIgnore(text: string): Ignore[] {
  return text.split(/\r?\n/).flatMap((line) => parseLine(line))
}

function parseLine(line: string): Ignore[] {
  const trimmed = line.replace(/(?<!\\)\s+$/, '')
  if (trimmed === '' || trimmed.startsWith('#')) return []
  const negated = trimmed.startsWith('!')
  const pattern = trimmed.slice(negated ? 1 : 0)
  const folderOnly = pattern.endsWith('/')
  const body = folderOnly ? pattern.slice(0, -1) : pattern
  if (body === '') return []
  return [{ glob: globOf(body), negated, folderOnly }]
}

/**
 * A pattern with a slash inside starts at the .gitignore's folder; without one it matches a name anywhere below. Braces are plain
 * characters.
 */
function globOf(body: string): Bun.Glob {
  const literal = body.replaceAll(/(?<!\\)([{}])/g, '\\$1').replace(/^(\/?)!/, '$1\\!')
  if (!body.includes('/')) return new Bun.Glob(`**/${literal}`)
  return new Bun.Glob(literal.startsWith('/') ? literal.slice(1) : literal)
}

/** The rules of one file, and the folder from which they start. */
export type Rules = { readonly from: string; readonly rules: readonly Ignore[] }

/** Decides by the rules of the nearest folder that has one for the path. @param above the farthest first */
export function isIgnored(above: readonly Rules[], path: string, isFolder: boolean): boolean {
  for (const { from, rules } of above.toReversed()) {
    const verdict = ignored(rules, from === '' ? path : path.slice(from.length + 1), isFolder)
    if (verdict !== undefined) return verdict
  }
  return false
}

/** @returns whether one folder's rules ignore a path below it; undefined when no rule matches. The last matching rule decides. */
function ignored(rules: readonly Ignore[], path: string, isFolder: boolean): boolean | undefined {
  const last = rules.findLast((rule) => (isFolder || !rule.folderOnly) && rule.glob.match(path))
  return last === undefined ? undefined : !last.negated
}
