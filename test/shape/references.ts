/** Finds every use of a name as a value with its binding, so that a parameter called `fetch` is not mistaken for the global one. */

import { children, eachChild, type Module, type Node, nameOf, nodes } from './module.ts'

export type Reference = {
  readonly name: string
  readonly node: Node
  /** `global` has no declaration, `module` is declared at the top of this file (imports too), `local` is any other. */
  readonly origin: 'global' | 'module' | 'local'
  /** The nearest enclosing node, with all nodes around it. */
  readonly place: Place
}

type Scope = { readonly names: ReadonlySet<string>; readonly outer?: Scope }
export type Place = { readonly node: Node; readonly outer?: Place; readonly scope: Scope; readonly walk: Walk }
/** The walk looks for hoisted names, which costs a second walk of each function, only where there is a `var`. */
type Walk = { readonly found: Reference[]; readonly hasVar: boolean }

const known = new WeakMap<Module, Walk>()

/** Returns the references of a module, whose tree it walks once for all laws. It reports `import.meta` as a global of that name. */
export function references(module: Module): readonly Reference[] {
  const before = known.get(module)
  if (before !== undefined) return before.found
  const walk = { found: [], hasVar: module.tree.some(isVar) }
  known.set(module, walk)
  return visit(module.program, { node: module.program, scope: { names: new Set() }, walk })
}

/** Adds the references in a node to those that were found before it, and returns all. */
function visit(node: Node, place: Place): Reference[] {
  const inner = within(node, place)
  switch (node.type) {
    case 'Identifier':
      return record(nameOf(node), node, place)
    case 'MetaProperty':
      return nameOf(node.meta) === 'import' ? record('import.meta', node, place) : place.walk.found
    case 'MemberExpression':
      return each([node.object, node.computed === true && node.property], inner)
    case 'Property':
    case 'MethodDefinition':
    case 'PropertyDefinition':
    case 'AccessorProperty':
      return each([node.decorators, node.computed === true && node.key, node.value], inner)
    case 'VariableDeclarator':
      patterns(node.id, inner)
      return each([node.init], inner)
    case 'FunctionDeclaration':
    case 'FunctionExpression':
    case 'ArrowFunctionExpression':
      return callable(node, place)
    case 'ClassDeclaration':
    case 'ClassExpression':
      each([node.decorators], place)
      return each([node.superClass, node.body], within(node, place, [nameOf(node.id)]))
    case 'CatchClause': {
      const caught = within(node, place, nodes(node.param).flatMap(boundNames))
      patterns(node.param, caught)
      return each([node.body], caught)
    }
    case 'LabeledStatement':
      return each([node.body], inner)
    case 'ExportNamedDeclaration':
      return each([node.declaration], inner)
    case 'BreakStatement':
    case 'ContinueStatement':
    case 'ImportDeclaration':
    case 'ExportAllDeclaration':
      return place.walk.found
  }
  if (node.type.startsWith('TS')) return each([valuesInType(node)], inner)
  const block = within(node, place, blockNames(node, place.walk))
  eachChild(node, (child) => visit(child, block))
  return place.walk.found
}

function each(values: readonly unknown[], place: Place): Reference[] {
  for (const value of values) for (const node of nodes(value)) visit(node, place)
  return place.walk.found
}

function within(node: Node, place: Place, names?: readonly string[]): Place {
  const isPlain = names === undefined || (names.length === 0 && node.type !== 'Program')
  const scope = isPlain ? place.scope : { names: new Set(names), outer: place.scope }
  return { node, outer: place, scope, walk: place.walk }
}

function record(name: string, node: Node, place: Place): Reference[] {
  place.walk.found.push({ name, node, origin: originOf(name, place.scope), place })
  return place.walk.found
}

/** A pattern declares names; only its defaults and computed keys use names. */
function patterns(value: unknown, place: Place): void {
  for (const node of nodes(value)) {
    const inner = within(node, place)
    each([node.type === 'AssignmentPattern' && node.right, node.type === 'Property' && node.computed === true && node.key], inner)
    patterns(patternParts(node), inner)
  }
}

function callable(node: Node, place: Place): Reference[] {
  const own = node.type === 'ArrowFunctionExpression' ? [] : ['arguments', node.type === 'FunctionExpression' ? nameOf(node.id) : '']
  const inner = within(node, place, [...nodes(node.params).flatMap(boundNames), ...hoisted(node, place.walk), ...own])
  patterns(node.params, inner)
  return each([node.body], inner)
}

function originOf(name: string, scope: Scope): Reference['origin'] {
  for (let at: Scope | undefined = scope; at !== undefined; at = at.outer) {
    if (at.names.has(name)) return at.outer?.outer === undefined ? 'module' : 'local'
  }
  return 'global'
}

/** Returns the values inside TypeScript's own syntax: the left of `as`, an enum's initialisers, a namespace's body. */
function valuesInType(node: Node): Node[] {
  if (node.type === 'TSEnumDeclaration')
    return nodes(node.body).flatMap((body) => nodes(body.members).flatMap((member) => nodes(member.initializer)))
  if (node.type === 'TSModuleDeclaration' || node.type === 'TSModuleBlock') return nodes(node.body)
  return nodes(node.expression)
}

function patternParts(node: Node): Node[] {
  switch (node.type) {
    case 'ObjectPattern':
      return nodes(node.properties)
    case 'ArrayPattern':
      return nodes(node.elements)
    case 'Property':
      return nodes(node.value)
    case 'AssignmentPattern':
      return nodes(node.left)
    case 'RestElement':
      return nodes(node.argument)
    case 'TSParameterProperty':
      return nodes(node.parameter)
    default:
      return []
  }
}

/** Returns the names that a pattern declares. */
export function boundNames(pattern: Node): string[] {
  return pattern.type === 'Identifier' ? [nameOf(pattern)] : patternParts(pattern).flatMap(boundNames)
}

/** Returns the names that one statement declares in its block. */
export function declaredNames(statement: Node): string[] {
  switch (statement.type) {
    case 'VariableDeclaration':
      return nodes(statement.declarations).flatMap((one) => nodes(one.id).flatMap(boundNames))
    case 'FunctionDeclaration':
    case 'ClassDeclaration':
    case 'TSEnumDeclaration':
    case 'TSModuleDeclaration':
      return [nameOf(statement.id)]
    case 'ImportDeclaration':
      return nodes(statement.specifiers).map((part) => nameOf(part.local))
    case 'ExportNamedDeclaration':
      return nodes(statement.declaration).flatMap(declaredNames)
    default:
      return []
  }
}

function blockNames(node: Node, walk: Walk): string[] | undefined {
  switch (node.type) {
    case 'Program':
      return [...nodes(node.body).flatMap(declaredNames), ...hoisted(node, walk)]
    case 'BlockStatement':
    case 'StaticBlock':
      return nodes(node.body).flatMap(declaredNames)
    case 'SwitchStatement':
      return nodes(node.cases).flatMap((one) => nodes(one.consequent).flatMap(declaredNames))
    case 'ForStatement':
      return nodes(node.init).flatMap(declaredNames)
    case 'ForInStatement':
    case 'ForOfStatement':
      return nodes(node.left).flatMap(declaredNames)
    default:
      return undefined
  }
}

/** `var` belongs to the whole function, wherever it is. */
function hoisted(node: Node, walk: Walk): string[] {
  if (!walk.hasVar) return []
  return children(node).flatMap((child) => {
    if (/Function|Class/.test(child.type)) return []
    return [...(isVar(child) ? declaredNames(child) : []), ...hoisted(child, walk)]
  })
}

function isVar(node: Node): boolean {
  return node.type === 'VariableDeclaration' && node.kind === 'var'
}
