/** .gitignore patterns, near enough for a search: order, negation, anchoring and folder-only rules; no global or info/exclude files. */

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

/** With a slash inside it starts at the .gitignore's own folder, without one it means a name anywhere below. Braces are plain letters. */
function globOf(body: string): Bun.Glob {
  const literal = body.replaceAll(/(?<!\\)([{}])/g, '\\$1')
  if (!body.includes('/')) return new Bun.Glob(`**/${literal}`)
  return new Bun.Glob(literal.startsWith('/') ? literal.slice(1) : literal)
}

/** What the rules of one folder say about a path below it; undefined when they do not mention it. The last word counts. */
export function ignored(rules: readonly Ignore[], path: string, isFolder: boolean): boolean | undefined {
  const last = rules.findLast((rule) => (isFolder || !rule.folderOnly) && rule.glob.match(path))
  return last === undefined ? undefined : !last.negated
}
