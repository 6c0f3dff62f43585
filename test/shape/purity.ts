/** Requires that core does no I/O: callers pass in the file system, the clock and randomness. */

import { layerOf } from './layers.ts'
import { isTest, type Law, type Module, type Node, nameOf, nodes, type Violation, violation } from './module.ts'
import { type Reference, references } from './references.ts'

/** Globals that reach the outside, the clock or randomness, or that hide such a use from this law. */
const WORLD = new Set([
  'process',
  'fetch',
  'setTimeout',
  'setInterval',
  'setImmediate',
  'clearTimeout',
  'clearInterval',
  'clearImmediate',
  'performance',
  'crypto',
  'console',
  'WebSocket',
  'EventSource',
  'XMLHttpRequest',
  'BroadcastChannel',
  'MessageChannel',
  'Worker',
  'SharedArrayBuffer',
  'Atomics',
  'navigator',
  'alert',
  'confirm',
  'prompt',
  'global',
  'globalThis',
  'self',
  'window',
  'require',
  'module',
  'eval',
  'Function',
  'import.meta',
  '__dirname',
  '__filename',
])

/** Of these objects only the named members are forbidden. */
const WORLDLY_MEMBERS: { readonly [name: string]: ReadonlySet<string> } = {
  Date: new Set(['now']),
  Math: new Set(['random']),
  AbortSignal: new Set(['timeout']),
}

const PURE_BUN = new Set(['CryptoHasher', 'TOML'])

export const coreDoesNoIo: Law = (modules) =>
  modules.filter((module) => layerOf(module.path).layer === 'core' && !isTest(module)).flatMap(reaches)

function reaches(module: Module): Violation[] {
  return references(module).flatMap((use) => {
    const reach = use.origin === 'global' ? reachOf(use) : undefined
    return reach === undefined ? [] : [violation(module, use.node, `core uses ${reach}; let the caller pass it in`)]
  })
}

function reachOf(use: Reference): string | undefined {
  const parent = use.place.node
  const member = memberOf(use)
  if (WORLD.has(use.name)) return use.name
  if (use.name === 'Bun') return member !== undefined && PURE_BUN.has(member) ? undefined : `Bun.${member ?? '*'}`
  if (use.name === 'Date' && readsClock(parent, use.node)) return 'the current Date'
  if (WORLDLY_MEMBERS[use.name] === undefined) return undefined
  if (member !== undefined) return WORLDLY_MEMBERS[use.name]?.has(member) === true ? `${use.name}.${member}` : undefined
  return isPlainUse(parent, use.node) ? undefined : `${use.name} as a value`
}

/** `new Date()` and `Date()` read the clock, `new Date(at)` does not. */
function readsClock(parent: Node, name: Node): boolean {
  if (parent.type !== 'NewExpression' && parent.type !== 'CallExpression') return false
  return parent.callee === name && (parent.type === 'CallExpression' || nodes(parent.arguments).length === 0)
}

/**
 * Allows `new Date(at)` and `x instanceof Date`. It forbids `const { now } = Date`, `f(Math)` and `Math[name]`, which this law cannot
 * follow.
 */
function isPlainUse(parent: Node, name: Node): boolean {
  return parent.type === 'BinaryExpression' || (parent.type === 'NewExpression' && parent.callee === name)
}

/** Returns the literal member that a reference uses: `now` in `Date.now` and `Date['now']`. */
export function memberOf(use: Reference): string | undefined {
  const parent = use.place.node
  if (parent.type !== 'MemberExpression' || parent.object !== use.node) return undefined
  return nameOf(nodes(parent.property)[0]) || undefined
}
