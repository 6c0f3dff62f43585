/** Checks the words of the program: how its comments begin, what its messages say, how often a type name is used again. */

import { isTest, type Law, lineOf, type Module, nameOf, violation } from './module.ts'

/** A sentence that begins with one of these has no subject, or hides it. */
const HEADLESS = /\/\*\*\s+(?:\*\s+)?(Of|What|Who|Whoever|Whose|Whatever|Nobody)\b/g

export const commentsHaveASubject: Law = (modules) =>
  modules
    .filter(isProgram)
    .flatMap((module) =>
      [...module.text.matchAll(HEADLESS)].map(({ index, 1: word }) => ({
        file: module.path,
        line: module.text.slice(0, index).split('\n').length,
        message: `a doc comment begins with "${word}"; begin with the verb: "Returns…", "Removes…"`,
      })),
    )

export const messagesSayIsNot: Law = (modules) =>
  modules
    .filter(isProgram)
    .flatMap((module) =>
      module.tree
        .filter(({ type, value }) => (type === 'Literal' || type === 'TemplateElement') && /\bis no\b/.test(textOf(value)))
        .map((node) => violation(module, node, 'a message says "is no"; write "is not a …", or what it is')),
    )

/** A name that means something else in each file tells a reader nothing. */
const MOST_FILES = 3

export const typeNamesAreOwn: Law = (modules) => {
  const places = new Map<string, { readonly file: string; readonly line: number }[]>()
  for (const module of modules.filter(isProgram))
    for (const node of module.tree.filter(({ type }) => type === 'TSTypeAliasDeclaration' || type === 'TSInterfaceDeclaration')) {
      const name = nameOf(node.id)
      places.set(name, [...(places.get(name) ?? []), { file: module.path, line: lineOf(module, node) }])
    }
  return [...places]
    .filter(([, found]) => new Set(found.map(({ file }) => file)).size > MOST_FILES)
    .flatMap(([name, found]) =>
      found.map((place) => ({ ...place, message: `"${name}" is a type in ${found.length} files; name it after what it holds` })),
    )
}

function textOf(value: unknown): string {
  if (typeof value === 'string') return value
  return typeof value === 'object' && value !== null && 'raw' in value && typeof value.raw === 'string' ? value.raw : ''
}

function isProgram(module: Module): boolean {
  return module.path.startsWith('src/') && !isTest(module) && !/(^|[./])fixture\.tsx?$/.test(module.path)
}
