/** Requires that an import has no effect: no statement runs, nothing is awaited, nothing registers itself, nothing is patched. */

import { layerOf } from './layers.ts'
import { children, isTest, type Law, type Module, type Node, nameOf, nodes, type Violation, violation } from './module.ts'

/** Files that are executed, not imported. */
const ENTRY = new Set(['src/main.ts', 'src/planck.ts'])

const STATEMENTS = new Set([
  'ImportDeclaration',
  'ExportNamedDeclaration',
  'ExportAllDeclaration',
  'VariableDeclaration',
  'FunctionDeclaration',
  'ClassDeclaration',
])

/** Called or constructed with data, these only create a value. */
const MAKERS = new Set([
  'Set',
  'Map',
  'WeakMap',
  'WeakSet',
  'RegExp',
  'TextEncoder',
  'TextDecoder',
  'URL',
  'Symbol',
  'String',
  'Number',
  'BigInt',
  'Boolean',
  'Uint8Array',
  // src/cli/args/command.ts: it returns its argument.
  'command',
  'controlCommand',
  // src/cli/commands/tools/folder-commands.ts: it calls `command` for each.
  'folderCommands',
])
const NAMESPACES = new Set(['Object', 'Array', 'Math', 'JSON', 'Symbol', 'String', 'Number', 'BigInt', 'Uint8Array', 'Buffer'])
/** Members of allowed objects that have effects: they change or read state outside. */
const ACTS = new Set(['Object.assign', 'Object.defineProperty', 'Object.defineProperties', 'Object.setPrototypeOf', 'Math.random'])
const METHODS = new Set(
  'map filter flatMap flat join split concat slice toSorted toReversed keys values entries trim toLowerCase toUpperCase replace replaceAll repeat padEnd padStart at includes union'.split(
    ' ',
  ),
)
/** Packages whose calls only build a description. */
const BUILDERS = new Set(['zod', '@hono/zod-openapi'])

export const nothingHappensOnImport: Law = (modules) =>
  modules
    .filter((module) => module.path.startsWith('src/') && !isTest(module))
    .flatMap((module) => [...bareImports(module), ...(ENTRY.has(module.path) ? [] : happenings(module))])

function bareImports(module: Module): Violation[] {
  return module.imports
    .filter((one) => one.bare)
    .map((one) => ({
      file: module.path,
      line: one.line,
      message: `import "${one.specifier}" takes nothing, so only its side effects can be meant`,
    }))
}

function happenings(module: Module): Violation[] {
  const known = { makers: makerNames(module), functions: ownFunctions(module) }
  return nodes(module.program.body).flatMap((statement) => {
    if (!STATEMENTS.has(statement.type) && !statement.type.startsWith('TS'))
      return [violation(module, statement, `${statement.type} runs on import`)]
    return eager(statement)
      .filter((node) => acts(node, known))
      .map((node) => violation(module, node, `${describe(node)} runs on import; make it a function that main.ts calls`))
  })
}

/** What this file may call while it loads: imported makers, and its own functions as long as those only create values too. */
type Known = { readonly makers: ReadonlySet<string>; readonly functions: ReadonlyMap<string, Node> }

/** Returns every node that is evaluated on import: all except the bodies of functions and of instance members. */
function eager(node: Node): Node[] {
  if (/Function/.test(node.type) && node.type !== 'TSParameterProperty') return [node]
  if (node.type === 'PropertyDefinition' && node.static !== true) return node.computed === true ? nodes(node.key).flatMap(eager) : []
  return [node, ...children(node).flatMap(eager)]
}

function acts(node: Node, known: Known): boolean {
  switch (node.type) {
    case 'AwaitExpression':
    case 'AssignmentExpression':
    case 'UpdateExpression':
    case 'ImportExpression':
    case 'StaticBlock':
    case 'Decorator':
      return true
    case 'UnaryExpression':
      return node.operator === 'delete'
    case 'TaggedTemplateExpression':
      return calleeName(node.tag) !== 'String.raw'
    case 'NewExpression':
      return !MAKERS.has(calleeName(node.callee))
    case 'CallExpression':
      return !isMaking(node, known)
    default:
      return false
  }
}

function isMaking(call: Node, known: Known): boolean {
  const name = calleeName(call.callee)
  const [root = '', ...members] = name.split('.')
  if (ACTS.has(name)) return false
  if (known.makers.has(root)) return true
  if (members.length === 0) return MAKERS.has(root) || isMaker(root, known)
  return (NAMESPACES.has(root) && members.length === 1) || METHODS.has(members.at(-1) ?? '')
}

/** Returns `a.b.c` for a chain of members, whatever calls are between: `z.string().min(1)` is `z.string.min`. */
function calleeName(callee: unknown): string {
  const [node] = nodes(callee)
  if (node === undefined) return ''
  if (node.type === 'Identifier') return nameOf(node)
  if (node.type === 'MemberExpression') return `${calleeName(node.object)}.${node.computed === true ? '?' : nameOf(node.property)}`
  if (node.type === 'CallExpression' || node.type === 'NewExpression') return calleeName(node.callee)
  return ''
}

/** True for a function of this file whose body only creates a value. */
function isMaker(name: string, known: Known): boolean {
  const body = known.functions.get(name)
  const rest = { ...known, functions: new Map([...known.functions].filter(([other]) => other !== name)) }
  return body !== undefined && !eager(body).some((node) => acts(node, rest))
}

function ownFunctions(module: Module): ReadonlyMap<string, Node> {
  const declared = nodes(module.program.body).flatMap((one) => (one.type === 'ExportNamedDeclaration' ? nodes(one.declaration) : [one]))
  return new Map(
    declared.flatMap((one): [string, Node][] => {
      if (one.type === 'FunctionDeclaration') return nodes(one.body).map((body) => [nameOf(one.id), body])
      return nodes(one.declarations).flatMap((variable) =>
        nodes(variable.init)
          .filter((init) => init.type === 'ArrowFunctionExpression')
          .flatMap((init) => nodes(init.body).map((body): [string, Node] => [nameOf(variable.id), body])),
      )
    }),
  )
}

/** Returns names imported from core, which by its own laws has no effects, and from packages that only build descriptions. */
function makerNames(module: Module): ReadonlySet<string> {
  const imports = nodes(module.program.body).filter((one) => one.type === 'ImportDeclaration' && isInert(module, nameOf(one.source)))
  return new Set(imports.flatMap((one) => nodes(one.specifiers).map((part) => nameOf(part.local))))
}

function isInert(module: Module, specifier: string): boolean {
  const target = module.imports.find((one) => one.specifier === specifier)?.target
  return target === undefined ? BUILDERS.has(packageRoot(specifier)) : layerOf(target).layer === 'core'
}

function packageRoot(specifier: string): string {
  return specifier
    .split('/')
    .slice(0, specifier.startsWith('@') ? 2 : 1)
    .join('/')
}

function describe(node: Node): string {
  if (node.type === 'CallExpression') return `${calleeName(node.callee) || 'a function'}()`
  return node.type === 'NewExpression' ? `new ${calleeName(node.callee)}` : node.type
}
