/**
 * Rolls the declarations that tsc emits for many sources into one file, with only what the entries reach, so that the package has few files
 * and nothing of the inside can be imported.
 */

import { readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { parseSync } from 'oxc-parser'
import { typedPackages } from './entries.ts'

type Node = { readonly type: string; readonly start: number; readonly end: number; readonly [key: string]: unknown }
type Edit = { readonly start: number; readonly end: number; readonly to: Reference }
/** A declaration of one of our files, or a name that a package exports. */
type Reference = { readonly file: string; readonly name: string } | { readonly pack: string; readonly name: string }
type Statement = {
  readonly text: string
  readonly comment: string
  readonly offset: number
  readonly edits: readonly Edit[]
  readonly isType: boolean
}
type Module = {
  readonly statements: ReadonlyMap<string, readonly Statement[]>
  readonly imports: ReadonlyMap<string, Reference>
  readonly exports: ReadonlyMap<string, Reference>
  /** The names that are exported as types alone, whatever they are. */
  readonly typeNames: ReadonlySet<string>
}

export type Rolled = {
  /** The text of the one file. */
  readonly text: string
  /** Per entry, the text of the file that exports its names from `from`. */
  entryText(file: string, from: string): string
  /** The packages whose types are used. */
  readonly packages: ReadonlySet<string>
}

const keyOf = (symbol: Reference) => ('pack' in symbol ? `${symbol.pack}#${symbol.name}` : `${symbol.file}#${symbol.name}`)

/** `files` are absolute paths of emitted declarations. @throws Error that names what cannot be published */
export function rollDeclarations(files: readonly string[]): Rolled {
  const modules = new Map<string, Module>()
  function moduleAt(file: string): Module {
    const known = modules.get(file)
    if (known) return known
    const { stars, ...read } = readModule(file)
    const passedOn = stars.flatMap((from) => [...moduleAt(from).exports.keys()].map((name) => [name, { file: from, name }] as const))
    const module = { ...read, exports: new Map<string, Reference>([...passedOn, ...read.exports]) }
    modules.set(file, module)
    return module
  }
  /** Follows imports and exports from elsewhere to the declaration. */
  function resolve(symbol: Reference): Reference {
    if ('pack' in symbol) return symbol
    const { statements, imports, exports } = moduleAt(symbol.file)
    if (statements.has(symbol.name)) return symbol
    const next = imports.get(symbol.name) ?? exports.get(symbol.name)
    if (next === undefined) throw new Error(`${symbol.file} declares no ${symbol.name}`)
    return resolve(next)
  }
  const reached = new Map<string, Reference>()
  const globals = new Set<string>()
  const queue = files.flatMap((file) => [...moduleAt(file).exports.keys()].map((name) => exportOf(file, name)))
  function exportOf(file: string, name: string): Reference {
    return resolve(moduleAt(file).exports.get(name) ?? { file, name })
  }
  for (let symbol = queue.shift(); symbol; symbol = queue.shift()) {
    if (reached.has(keyOf(symbol))) continue
    reached.set(keyOf(symbol), symbol)
    for (const { to } of editsOf(symbol)) queue.push(...reference(to))
  }
  function editsOf(symbol: Reference): readonly Edit[] {
    return 'pack' in symbol ? [] : (moduleAt(symbol.file).statements.get(symbol.name) ?? []).flatMap(({ edits }) => edits)
  }
  /** Returns nothing for a name of the language or of the platform. */
  function reference(to: Reference): readonly Reference[] {
    if ('pack' in to || isKnown(to)) return [resolve(to)]
    globals.add(to.name)
    return []
  }
  function isKnown({ file, name }: { readonly file: string; readonly name: string }): boolean {
    const { statements, imports } = moduleAt(file)
    return statements.has(name) || imports.has(name)
  }
  const foreign = ['Bun', 'Buffer', 'NodeJS'].find((name) => globals.has(name))
  if (foreign) throw new Error(`a public type names ${foreign}, whose types not every program has; name the members that are needed`)
  const names = uniqueNames([...reached.values()], globals)
  const nameOf = (symbol: Reference) => names.get(keyOf(symbol)) ?? symbol.name
  const outside = [...reached.values()].filter((symbol) => 'pack' in symbol)
  const unknown = outside.find(({ pack }) => !typedPackages.includes(pack))
  if (unknown)
    throw new Error(`a public type uses ${unknown.name} of ${unknown.pack}, which not every program has; name the members that are needed`)

  const imports = outside.map((symbol) => `import type { ${symbol.name} as ${nameOf(symbol)} } from '${symbol.pack}'\n`)
  const inside = [...reached.values()].filter((symbol) => 'file' in symbol)
  const bodies = inside.flatMap((symbol) =>
    (moduleAt(symbol.file).statements.get(symbol.name) ?? []).map((statement) =>
      print(statement, (to) => (reference(to).length === 0 ? to.name : nameOf(resolve(to)))),
    ),
  )
  const isType = (symbol: Reference) =>
    'pack' in symbol || (moduleAt(symbol.file).statements.get(symbol.name) ?? []).every((one) => one.isType)
  const listed = (symbol: Reference, as = nameOf(symbol), typeOnly = false) =>
    `${typeOnly || isType(symbol) ? 'type ' : ''}${nameOf(symbol)}${as === nameOf(symbol) ? '' : ` as ${as}`}`
  const published = [
    ...new Map(
      files.flatMap((file) => [...moduleAt(file).exports.keys()].map((name) => [keyOf(exportOf(file, name)), exportOf(file, name)])),
    ).values(),
  ]
  return {
    text: `${imports.join('')}${bodies.join('')}export { ${published.map((symbol) => listed(symbol)).join(', ')} }\n`,
    entryText: (file, from) =>
      `export { ${[...moduleAt(file).exports.keys()].map((name) => listed(exportOf(file, name), name, moduleAt(file).typeNames.has(name))).join(', ')} } from '${from}'\n`,
    packages: new Set(outside.map(({ pack }) => pack)),
  }
}

/** Gives every declaration its own name, which is also no name of the language that another one uses. */
function uniqueNames(symbols: readonly Reference[], globals: ReadonlySet<string>): ReadonlyMap<string, string> {
  const taken = new Set(globals)
  return new Map(
    symbols.map((symbol) => {
      let name = symbol.name
      for (let count = 2; taken.has(name); count += 1) name = `${symbol.name}_${count}`
      taken.add(name)
      return [keyOf(symbol), name]
    }),
  )
}

function print({ text, comment, offset, edits }: Statement, nameOf: (to: Reference) => string): string {
  let printed = ''
  let at = 0
  for (const edit of [...edits].sort((a, b) => a.start - b.start)) {
    printed += text.slice(at, edit.start - offset) + nameOf(edit.to)
    at = edit.end - offset
  }
  const whole = printed + text.slice(at)
  const declared = /^(declare|type|interface)\b/.test(whole) ? whole : `declare ${whole}`
  return `${comment === '' ? '' : `${comment}\n`}${declared}\n`
}

/** `stars`: the files whose exports it passes on whole. */
function readModule(file: string): Module & { readonly stars: readonly string[] } {
  const text = readFileSync(file, 'utf8')
  const { program, comments, errors } = parseSync(file, text)
  if (errors.length > 0) throw new Error(`${file}: ${errors[0]?.message}`)
  const statements = new Map<string, Statement[]>()
  const imports = new Map<string, Reference>()
  const exports = new Map<string, Reference>()
  const stars: string[] = []
  const typeNames = new Set<string>()
  const from = (specifier: string, name: string): Reference =>
    specifier.startsWith('.') ? { file: declarationOf(join(dirname(file), specifier)), name } : { pack: specifier, name }
  /** Returns the module for a name that means a whole one. */
  function hereOrWhole(name: string): Reference {
    const imported = imports.get(name)
    return imported?.name === '*' ? imported : { file, name }
  }
  function declare(node: Node, outer: Node): void {
    const kinds = node.type === 'VariableDeclaration' ? (node.declarations as Node[]) : [node]
    for (const declared of kinds) {
      if (!declared.id) throw new Error(`${file}: ${node.type} in a declaration is not supported`)
      const { name } = declared.id as unknown as { readonly name: string }
      const comment = comments.findLast(
        ({ end, type, value }) =>
          end <= outer.start && type === 'Block' && value.startsWith('*') && text.slice(end, outer.start).trim() === '',
      )
      const statement = {
        text: text.slice(node.start, node.end),
        comment: comment ? text.slice(comment.start, comment.end) : '',
        offset: node.start,
        edits: referencesIn(node, hereOrWhole, from),
        isType: /^TS(TypeAlias|Interface)Declaration$/.test(node.type),
      }
      statements.set(name, [...(statements.get(name) ?? []), statement])
      if (outer !== node) exports.set(name, { file, name })
    }
  }
  for (const node of program.body as unknown as Node[]) {
    const source = (node.source as { readonly value: string } | null | undefined)?.value
    const specifiers = (node.specifiers ?? []) as {
      readonly type: string
      readonly exportKind?: string
      readonly local: { readonly name: string }
      readonly imported?: { readonly name: string }
      readonly exported?: { readonly name: string }
    }[]
    if (node.type === 'ExportAllDeclaration') stars.push(declarationOf(join(dirname(file), source ?? '')))
    else if (node.type === 'ImportDeclaration')
      for (const { local, imported, type } of specifiers)
        imports.set(local.name, from(source ?? '', imported?.name ?? (type === 'ImportNamespaceSpecifier' ? '*' : 'default')))
    else if (node.type !== 'ExportNamedDeclaration') declare(node, node)
    else if (node.declaration) declare(node.declaration as Node, node)
    else
      for (const { local, exported, exportKind } of specifiers) {
        if (node.exportKind === 'type' || exportKind === 'type') typeNames.add(exported?.name ?? '')
        exports.set(exported?.name ?? '', source === undefined ? { file, name: local.name } : from(source, local.name))
      }
  }
  return { statements, imports, exports, stars, typeNames }
}

const declarationOf = (path: string) => path.replace(/\.(ts|js)$/, '.d.ts')

/** Finds every name in a declaration that means something outside of it, and the declaration's own name. */
function referencesIn(
  root: Node,
  here: (name: string) => Reference,
  from: (specifier: string, name: string) => Reference,
): readonly Edit[] {
  const edits: Edit[] = []
  const bound = new Set<string>()
  const note = (node: unknown) => {
    let first = node as Node
    let member: Node | undefined
    while (first.type === 'TSQualifiedName' || first.type === 'MemberExpression') {
      member = (first.right ?? first.property) as Node
      first = (first.left ?? first.object) as Node
    }
    if (first.type === 'Identifier') {
      // The end of a declared name is that of its type.
      const name = String(first.name)
      const to = here(name)
      // A member of a whole module that was imported.
      if (to.name === '*' && member) edits.push({ start: first.start, end: member.end, to: { ...to, name: String(member.name) } })
      else edits.push({ start: first.start, end: first.start + name.length, to })
    }
  }
  function visit(node: Node): void {
    if (node.type === 'TSTypeParameter') bound.add((node.name as { readonly name: string }).name)
    if (node.type === 'TSMappedType' && node.key) bound.add((node.key as { readonly name: string }).name)
    if (node.type === 'TSTypeReference') note(node.typeName)
    if (node.type === 'TSTypeQuery' && (node.exprName as Node).type !== 'TSImportType') note(node.exprName)
    if (node.type === 'TSInterfaceHeritage' || node.type === 'TSClassImplements') note(node.expression)
    if (node.superClass) note(node.superClass)
    if (node.computed === true && node.type !== 'MemberExpression' && node.key) note(node.key)
    if (node.type === 'TSImportType') {
      const { source, qualifier } = node as unknown as { readonly source: { readonly value: string }; readonly qualifier: Node | null }
      if (qualifier?.type !== 'Identifier')
        throw new Error(`import("${source.value}") in a declaration is not supported; name its type in an import`)
      edits.push({ start: node.start, end: qualifier.end, to: from(source.value, String(qualifier.name)) })
    }
    for (const value of Object.values(node)) {
      for (const child of Array.isArray(value) ? value : [value]) if (isNode(child)) visit(child)
    }
  }
  visit(root)
  for (const declared of root.type === 'VariableDeclaration' ? (root.declarations as Node[]) : [root]) note(declared.id)
  return edits.filter(({ to }) => !('file' in to && bound.has(to.name)))
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && 'start' in value
}
