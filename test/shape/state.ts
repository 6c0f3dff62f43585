/** Requires that state lives in one place with one writer, and never in a module. */

import { isTest, type Law, type Module, type Node, nameOf, nodes, type Violation, violation } from './module.ts'
import { type Place, type Reference, references } from './references.ts'

const MUTATORS = new Set('set add delete clear push pop shift unshift splice sort reverse fill copyWithin'.split(' '))
const OBJECT_MUTATORS = new Set(['assign', 'defineProperty', 'defineProperties', 'setPrototypeOf'])

export const noModuleLevelLet: Law = (modules) =>
  program(modules).flatMap((module) =>
    topLevel(module)
      .filter((one) => one.type === 'VariableDeclaration' && (one.kind === 'let' || one.kind === 'var'))
      .map((one) => violation(module, one, `module-level ${one.kind}; keep the state in a closure that its owner makes`)),
  )

/** A collection that is empty when the module loads can only be intended as a store. */
export const noModuleLevelStore: Law = (modules) =>
  program(modules).flatMap((module) =>
    topLevel(module)
      .flatMap((one) => (one.type === 'VariableDeclaration' ? nodes(one.declarations) : []))
      .filter((one) => nodes(one.init).map(unwrapped).some(isEmptyStore))
      .map((one) =>
        violation(module, one, `"${nameOf(one.id)}" is an empty collection at module level; keep it in a closure that its owner makes`),
      ),
  )

/** A module may change in place neither its own declarations nor its imports. */
export const noModuleStateIsChanged: Law = (modules) =>
  program(modules).flatMap((module) => {
    const foreign = packageNames(module)
    return references(module)
      .filter((use) => use.origin === 'module' && !foreign.has(use.name) && isChanged(use))
      .map((use) => violation(module, use.node, `"${use.name}" is module-level and is changed here`))
  })

/** `test` and `exec` of a global or sticky pattern keep their position between calls of different callers. */
export const noPatternRemembers: Law = (modules) =>
  program(modules).flatMap((module) => {
    const sticky = new Set(topLevel(module).flatMap(stickyNames))
    return references(module)
      .filter((use) => use.origin === 'module' && sticky.has(use.name) && /^(test|exec)$/.test(memberChain(use)[0] ?? ''))
      .map(
        (use): Violation =>
          violation(module, use.node, `"${use.name}" has the flag g or y and keeps lastIndex between calls; drop the flag or use matchAll`),
      )
  })

function program(modules: readonly Module[]): Module[] {
  return modules.filter((module) => module.path.startsWith('src/') && !isTest(module))
}

function topLevel(module: Module): Node[] {
  return nodes(module.program.body).flatMap((one) => (one.type === 'ExportNamedDeclaration' ? nodes(one.declaration) : [one]))
}

/** Removes `as`, `satisfies` and `!`, which change nothing at run time. */
function unwrapped(node: Node): Node {
  return node.type.startsWith('TS') ? (nodes(node.expression).map(unwrapped)[0] ?? node) : node
}

function isEmptyStore(node: Node): boolean {
  if (node.type === 'ArrayExpression') return nodes(node.elements).length === 0
  if (node.type === 'ObjectExpression') return nodes(node.properties).length === 0
  return node.type === 'NewExpression' && /^(Weak)?(Map|Set)$/.test(nameOf(node.callee)) && nodes(node.arguments).length === 0
}

/** Returns names bound to packages: the law ignores, for example, a schema builder's `.set()`. */
function packageNames(module: Module): ReadonlySet<string> {
  const imports = nodes(module.program.body).filter((one) => one.type === 'ImportDeclaration' && !nameOf(one.source).startsWith('.'))
  return new Set(imports.flatMap((one) => nodes(one.specifiers).map((part) => nameOf(part.local))))
}

function isChanged(use: Reference): boolean {
  const { chain, parent } = memberTrail(use)
  const [last, holder] = chain
  const written =
    (parent.type === 'AssignmentExpression' && parent.left === last) ||
    parent.type === 'UpdateExpression' ||
    (parent.type === 'UnaryExpression' && parent.operator === 'delete')
  if (written) return true
  if (parent.type !== 'CallExpression') return false
  if (parent.callee === last && holder !== undefined) return MUTATORS.has(memberChain(use).at(-1) ?? '')
  return nodes(parent.arguments)[0] === last && isObjectMutator(parent.callee)
}

function isObjectMutator(callee: unknown): boolean {
  const [node] = nodes(callee)
  return node?.type === 'MemberExpression' && nameOf(node.object) === 'Object' && OBJECT_MUTATORS.has(nameOf(node.property))
}

/** Returns the members taken from a reference, outwards: `['a', 'push']` for `list.a.push`. */
function memberChain(use: Reference): string[] {
  return memberTrail(use)
    .chain.slice(0, -1)
    .toReversed()
    .map((node) => nameOf(node.property) || '?')
}

/** Returns the outermost member expression first, the reference itself last, and the node around them. */
function memberTrail({ node, place }: Reference): { readonly chain: readonly Node[]; readonly parent: Node } {
  const chain = [node]
  let at: Place | undefined = place
  for (; at?.node.type === 'MemberExpression' && at.node.object === chain[0]; at = at.outer) chain.unshift(at.node)
  return { chain, parent: (at ?? place).node }
}

function stickyNames(statement: Node): string[] {
  if (statement.type !== 'VariableDeclaration') return []
  return nodes(statement.declarations)
    .filter((one) => nodes(one.init).some((init) => typeof init.raw === 'string' && /^\/.*\/[a-z]*[gy][a-z]*$/s.test(init.raw)))
    .map((one) => nameOf(one.id))
}
