/**
 * Matches .gitignore patterns closely enough for a search: order, negation, anchoring, folder-only rules; the caller reads the files.
 */

export type Ignore = { readonly glob: Bun.Glob; readonly negated: boolean; readonly folderOnly: boolean }

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

/** @returns whether one folder's rules ignore a path below it; undefined when no rule matches. The last matching rule decides. */
export function ignored(rules: readonly Ignore[], path: string, isFolder: boolean): boolean | undefined {
  const last = rules.findLast((rule) => (isFolder || !rule.folderOnly) && rule.glob.match(path))
  return last === undefined ? undefined : !last.negated
}
