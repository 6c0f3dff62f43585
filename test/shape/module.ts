/** Represents a source file for the laws: its text, its syntax tree and all its imports, type imports included. */

import { parseSync, visitorKeys } from 'oxc-parser'

export type Node = { readonly type: string; readonly start: number; readonly end: number; readonly [key: string]: unknown }

export type Import = {
  readonly specifier: string
  /** The repository path of a relative import, whether or not such a file exists. */
  readonly target?: string
  readonly line: number
  /** `import './x.ts'`: it takes no name, so only its side effects can be intended. */
  readonly bare: boolean
  readonly typeOnly: boolean
  readonly names: readonly string[]
}

export type Module = {
  readonly path: string
  readonly text: string
  readonly program: Node
  /** All nodes of the program, an outer node before its inner nodes. */
  readonly tree: readonly Node[]
  readonly imports: readonly Import[]
  readonly errors: readonly string[]
}

export type Violation = { readonly file: string; readonly line: number; readonly message: string }

export type Law = (modules: readonly Module[]) => Violation[]

export function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && 'type' in value && typeof value.type === 'string'
}

export function nodes(value: unknown): Node[] {
  return Array.isArray(value) ? value.filter(isNode) : isNode(value) ? [value] : []
}

export function children(node: Node): Node[] {
  const found: Node[] = []
  eachChild(node, (child) => found.push(child))
  return found
}

/** Does without a list of the children, because the walks over all trees call it for each node. */
export function eachChild(node: Node, visit: (child: Node) => void): void {
  for (const key of visitorKeys[node.type] ?? []) {
    const value = node[key]
    if (isNode(value)) visit(value)
    else if (Array.isArray(value)) for (const one of value) if (isNode(one)) visit(one)
  }
}

export function nameOf(value: unknown): string {
  if (!isNode(value)) return ''
  if (typeof value.name === 'string') return value.name
  return typeof value.value === 'string' ? value.value : ''
}

export function lineOf(module: { readonly text: string }, node: Node): number {
  return module.text.slice(0, node.start).split('\n').length
}

export function violation(module: Module, node: Node, message: string): Violation {
  return { file: module.path, line: lineOf(module, node), message }
}

/** Tests may use what the program may not: a server, a database, the clock. They still obey the layers. */
export function isTest(module: Module): boolean {
  return module.path.endsWith('.test.ts') || module.path.startsWith('test/')
}

export function parseModule(path: string, text: string): Module {
  const { program, errors } = parseSync(path, text, { preserveParens: false })
  if (!isNode(program)) throw new TypeError(`no syntax tree for ${path}`)
  const tree: Node[] = []
  const imports: Import[] = []
  const visit = (node: Node): void => {
    tree.push(node)
    const source = sourceOf(node)
    if (source !== undefined) imports.push(importOf({ path, text }, node, source))
    eachChild(node, visit)
  }
  visit(program)
  return { path, text, program, tree, imports, errors: errors.map((error) => error.message) }
}

function sourceOf(node: Node): string | undefined {
  switch (node.type) {
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
    case 'ExportNamedDeclaration':
    case 'ImportExpression':
    case 'TSImportType':
      return node.source === null ? undefined : literal(node.source)
    case 'TSExternalModuleReference':
      return literal(node.expression)
    case 'CallExpression':
      return nameOf(node.callee) === 'require' ? literal(nodes(node.arguments)[0]) : undefined
  }
}

/** The name of an import that is known only at run time. */
export const COMPUTED = '(computed)'

function literal(value: unknown): string {
  return isNode(value) && typeof value.value === 'string' ? value.value : COMPUTED
}

function importOf(file: { path: string; text: string }, node: Node, specifier: string): Import {
  const parts = nodes(node.specifiers)
  const typeOnly =
    node.type === 'TSImportType' ||
    node.importKind === 'type' ||
    node.exportKind === 'type' ||
    (parts.length > 0 && parts.every((part) => part.importKind === 'type' || part.exportKind === 'type'))
  return {
    specifier,
    line: lineOf(file, node),
    bare: node.type === 'ImportDeclaration' && parts.length === 0,
    typeOnly,
    names: parts.map((part) =>
      part.type === 'ImportSpecifier' ? nameOf(part.imported) : part.type === 'ImportDefaultSpecifier' ? 'default' : '*',
    ),
    ...(specifier.startsWith('.') ? { target: resolve(file.path, specifier) } : {}),
  }
}

function resolve(from: string, specifier: string): string {
  const steps = from.split('/').slice(0, -1)
  for (const step of specifier.split('/')) {
    if (step === '..') steps.length === 0 ? steps.push('..') : steps.pop()
    else if (step !== '.') steps.push(step)
  }
  return steps.join('/')
}

/** A path and the source of the file there. */
export type Sample = readonly [path: string, source: string]

export type LawCase = {
  readonly name: string
  readonly check: Law
  readonly guilty: readonly Sample[]
  readonly innocent?: readonly Sample[]
}
